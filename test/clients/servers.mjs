/** The servers that each client meets, each with an account that has a name and a key of its own, on ports of their own. */
import { randomBytes } from 'node:crypto';
import * as emulator from '../../bench/http-client.mjs';
import { endAll, startServer } from '../../bench/servers.mjs';
import { installAzurite } from '../../scripts/azurite.mjs';
import { Unavailable } from './steps.mjs';

/**
 * @typedef {object} Target
 * @property {'holdfast' | 'azurite'} kind
 * @property {string} location its data directory
 * @property {string} account
 * @property {string} key
 * @property {string} authority host and port of the Blob service
 * @property {string} blobUrl
 * @property {string} connectionString
 * @property {() => Promise<void>} stop
 */

const ACCOUNT = 'clients';
const key = randomBytes(64).toString('base64');

/** Both servers read it; the start is probed with the emulator's account. */
process.env.AZURITE_ACCOUNTS = `${emulator.account}:${emulator.accountKey};${ACCOUNT}:${key}`;

/** @type {readonly { kind: Target['kind'], title: string }[]} */
export const servers = [
  { kind: 'holdfast', title: 'Holdfast' },
  { kind: 'azurite', title: 'Azurite' },
];

export { endAll as endServers };

/** @returns its version */
export function fetchAzurite() {
  try {
    return installAzurite();
  } catch (error) {
    throw new Unavailable(`Azurite: ${error instanceof Error ? error.message : error}`);
  }
}

/** @param {Target['kind']} kind @param {string} location @returns {Promise<Target>} */
export async function startTarget(kind, location) {
  const { ports, stop } = await startServer(kind, location);
  const url = (/** @type {string} */ service) => `http://127.0.0.1:${ports[service][0]}/${ACCOUNT}`;
  const pairs = {
    DefaultEndpointsProtocol: 'http',
    AccountName: ACCOUNT,
    AccountKey: key,
    BlobEndpoint: url('blob'),
    QueueEndpoint: url('queue'),
    TableEndpoint: url('table'),
    ...(ports.file && { FileEndpoint: url('file') }),
  };
  return {
    kind,
    location,
    account: ACCOUNT,
    key,
    authority: new URL(url('blob')).host,
    blobUrl: url('blob'),
    connectionString: Object.entries(pairs)
      .map((pair) => pair.join('='))
      .join(';'),
    stop,
  };
}
