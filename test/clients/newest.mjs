/** The newest release of each client: how it is installed, and what it runs. */
import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BlobServiceClient } from '@azure/storage-blob';
import { azcopy } from './azcopy.mjs';
import { environmentOf, sasOfCommand } from './environment.mjs';
import { built, checked, fetched, Unavailable } from './steps.mjs';

/** @typedef {{ folder: string, location: string, server: import('holdfast').HoldfastServer, print: (line: string) => void }} Place */
/** @typedef {(place: Place) => Promise<{ title: string, fault?: string }[]>} Client */

const here = fileURLToPath(new URL('.', import.meta.url));
const GO_SDK = 'github.com/Azure/azure-sdk-for-go/sdk/storage/azblob';

/** @type {Record<string, Client>} */
export const clients = { python, go, azcopy, java, rust };

/** @type {Client} */
async function python({ folder, location, server, print }) {
  mkdirSync(folder);
  await fetched('python3', ['-m', 'venv', 'venv'], { cwd: folder });
  const command = join(folder, 'venv', process.platform === 'win32' ? 'Scripts' : 'bin', 'python');
  await fetched(
    command,
    ['-m', 'pip', 'install', '--quiet', 'azure-storage-blob', 'azure-storage-queue', 'azure-data-tables'],
    {
      cwd: folder,
    },
  );
  const version = 'import azure.storage.blob as each; print(each.__version__)';
  print(`  azure-storage-blob ${(await built(command, ['-c', version], { cwd: folder })).trim()}`);
  const scripts = readdirSync(join(here, 'python')).filter((name) => name.endsWith('.py') && name !== 'harness.py');
  const env = { ...environmentOf(server), ...(await sasOfCommand(server, location)) };
  const checks = [];
  for (const script of scripts) {
    const found = await checked(command, [join(here, 'python', script)], { cwd: folder, env });
    checks.push(...found.map((check) => ({ ...check, title: `${script.slice(0, -3)}: ${check.title}` })));
  }
  return checks;
}

/** @type {Client} */
async function go({ folder, server, print }) {
  cpSync(join(here, 'go'), folder, { recursive: true });
  const options = { cwd: folder, minutes: 20 };
  const listed = await fetched('go', ['list', '-m', '-versions', GO_SDK], options);
  const releases = listed
    .trim()
    .split(' ')
    .slice(1)
    .filter((version) => !version.includes('-'));
  let refusal;
  // A module proxy need not have the dependencies of the newest release.
  for (const version of releases.reverse().slice(0, 12)) {
    try {
      await fetched('go', ['get', `${GO_SDK}@${version}`], options);
      await fetched('go', ['mod', 'tidy'], options);
      print(`  azblob ${version}`);
      await built('go', ['build', '-o', 'client', '.'], options);
      return await checked(join(folder, 'client'), [], { ...options, env: environmentOf(server) });
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      print(`  azblob ${version} cannot be had`);
      refusal ??= error;
    }
  }
  throw refusal ?? new Unavailable('There is no release of azblob.');
}

/** @type {Client} */
async function java({ folder, server, print }) {
  cpSync(join(here, 'java'), folder, { recursive: true });
  const options = { cwd: folder, minutes: 10 };
  await fetched('java', ['-version'], options);
  const words = ['--quiet', '--batch-mode', 'dependency:build-classpath', '-Dmdep.outputFile=classpath'];
  await fetched('mvn', words, options);
  const classpath = readFileSync(join(folder, 'classpath'), 'utf8').trim();
  print(`  ${/azure-storage-blob-[\d.]+\d/.exec(classpath)?.[0]}`);
  return await checked('java', ['-cp', classpath, 'Client.java'], { ...options, env: environmentOf(server) });
}

/** @type {Client} */
async function rust({ folder, server, print }) {
  cpSync(join(here, 'rust'), folder, { recursive: true });
  const options = { cwd: folder, minutes: 20 };
  await fetched('cargo', ['fetch', '--quiet'], options);
  print(
    `  ${(await built('cargo', ['tree', '--depth', '1', '--prefix', 'none'], options)).match(/object_store v\S+/)?.[0]}`,
  );
  await built('cargo', ['build', '--quiet'], options);
  // The crate cannot make one.
  await BlobServiceClient.fromConnectionString(server.connectionString).createContainer('rust');
  const env = { ...environmentOf(server), HOLDFAST_CONTAINER: 'rust' };
  return await checked(join(folder, 'target', 'debug', 'holdfast-client'), [], { ...options, env });
}
