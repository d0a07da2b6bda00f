/** The environment variables of the client programs. */
import { fileURLToPath } from 'node:url';
import { AccountSASPermissions, BlobServiceClient } from '@azure/storage-blob';
import { built } from './steps.mjs';

const cli = fileURLToPath(new URL('../../dist/bin/holdfast.js', import.meta.url));
const ODD_NAME = 'ü b+c';

/** @param {{ readonly blobUrl: string, readonly connectionString: string }} server */
export function environmentOf({ blobUrl, connectionString }) {
  const [, account = '', key = ''] = /AccountName=([^;]+);AccountKey=([^;]+)/.exec(connectionString) ?? [];
  const service = BlobServiceClient.fromConnectionString(connectionString);
  const sas = service.generateAccountSasUrl(undefined, AccountSASPermissions.parse('rwdlacuptf'), 'sco');
  return {
    HOLDFAST_URL: blobUrl,
    HOLDFAST_SAS_URL: sas,
    HOLDFAST_ACCOUNT: account,
    HOLDFAST_KEY: key,
    HOLDFAST_CONNECTION_STRING: connectionString,
    PYTHONDONTWRITEBYTECODE: '1',
  };
}

/**
 * What `holdfast sas` prints for a blob, while the server works on this folder.
 * @param {{ readonly connectionString: string }} server
 * @param {string} location
 */
export async function sasOfCommand({ connectionString }, location) {
  const container = BlobServiceClient.fromConnectionString(connectionString).getContainerClient('sas-of-command');
  await container.createIfNotExists();
  await container.getBlockBlobClient(ODD_NAME).upload('content', 7);
  const words = ['sas', '--location', location, '--account', container.accountName];
  words.push('--container', container.containerName, '--blob', ODD_NAME);
  const printed = await built(process.execPath, [cli, ...words], { cwd: location });
  const url = /^https?:.*$/m.exec(printed)?.[0];
  if (url === undefined) throw new Error(`holdfast sas printed no URL: ${printed}`);
  return { HOLDFAST_SAS_OF_COMMAND: url, HOLDFAST_SAS_CONTENT: 'content' };
}
