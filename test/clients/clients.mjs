/** The clients: what each needs of the machine, how its newest release is installed, and what it runs. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BlobServiceClient } from '@azure/storage-blob';
import { ShareServiceClient } from '@azure/storage-file-share';
import { installAz, runAz } from './az.mjs';
import { installAzcopy, runAzcopy } from './azcopy.mjs';
import { runAzcopyOnShares } from './azcopy-files.mjs';
import { environmentOf, sasOfCommand } from './environment.mjs';
import { cargoProgram, cargoTests, goProgram, goTests, here, maven, pip } from './install.mjs';
import { parseCargoTest, parseGoTest } from './results.mjs';
import { checked } from './steps.mjs';

/** @typedef {import('./install.mjs').Tool} Tool */
/** @typedef {import('./results.mjs').Check} Check */
/** @typedef {{ target: import('./servers.mjs').Target, folder: string }} Place `folder`: empty, and removed afterwards */
/**
 * @typedef {object} Client
 * @property {readonly string[]} needs toolchains that must be on the PATH
 * @property {() => Promise<Tool>} install
 * @property {(tool: Tool, place: Place) => Promise<Check[]>} run
 * @property {boolean} [ofShares] concerns the File service, which Azurite does not have
 */

const SDK = 'azure-storage-blob';

/** @type {Record<string, Client>} */
export const clients = {
  azcopy: { needs: ['npm'], install: installAzcopy, run: runAzcopy },
  rclone: {
    needs: ['go'],
    install: () => goTests('rclone', 'github.com/rclone/rclone', 'backend/azureblob'),
    run: runRclone,
  },
  'azcopy-files': { needs: ['npm'], install: installAzcopy, run: runAzcopyOnShares, ofShares: true },
  'rclone-files': {
    needs: ['go'],
    install: () => goTests('rclone-files', 'github.com/rclone/rclone', 'backend/azurefiles'),
    run: runRcloneOnShares,
    ofShares: true,
  },
  python: {
    needs: ['python3'],
    install: () =>
      pip('python-packages', [SDK, 'azure-storage-queue', 'azure-data-tables', 'azure-storage-file-share']),
    run: runPythonSdk,
  },
  go: {
    needs: ['go'],
    install: () => goProgram('go', 'github.com/Azure/azure-sdk-for-go/sdk/storage/azblob'),
    run: runProgram,
  },
  java: { needs: ['java', 'mvn'], install: () => maven('java', SDK), run: runJava },
  rust: { needs: ['cargo'], install: () => cargoProgram('rust', 'azure_storage_blob'), run: runProgram },
  object_store: { needs: ['cargo'], install: () => cargoTests('object_store', 'azure'), run: runObjectStore },
  obstore: library('obstore'),
  deltalake: library('deltalake', 'pyarrow'),
  polars: library('polars'),
  pyarrow: library('pyarrow'),
  opendal: library('opendal'),
  adlfs: library('adlfs'),
  az: { needs: ['python3'], install: installAz, run: runAz },
};

/** A package of Python, and the script of libraries/ that uses it. @param {string} name @param {string[]} others @returns {Client} */
function library(name, ...others) {
  return {
    needs: ['python3'],
    install: () => pip('python-packages', [name, ...others, SDK]),
    run: ({ command }, { target, folder }) => {
      const env = { ...environmentOf(target), PYTHONPATH: join(here, 'python') };
      return checked(command, [join(here, 'libraries', `with_${name}.py`)], { cwd: folder, env, minutes: 10 });
    },
  };
}

/** @type {Client['run']} */
async function runPythonSdk({ command }, { target, folder }) {
  // What handles.py lists is opened by the test that runs it.
  const others = ['harness.py', 'handles.py', ...(target.kind === 'holdfast' ? [] : ['shares.py'])];
  const scripts = readdirSync(join(here, 'python')).filter((name) => name.endsWith('.py') && !others.includes(name));
  const env = {
    ...environmentOf(target),
    ...(target.kind === 'holdfast' && (await sasOfCommand(target, target.location))),
  };
  const checks = [];
  for (const script of scripts) {
    const found = await checked(command, [join(here, 'python', script)], { cwd: folder, env });
    checks.push(...found.map((check) => ({ ...check, title: `${script.slice(0, -3)}: ${check.title}` })));
  }
  return checks;
}

/** @type {Client['run']} */
function runProgram({ command }, { target, folder }) {
  return checked(command, [], { cwd: folder, env: environmentOf(target) });
}

/** @type {Client['run']} */
function runJava({ command, folder, env }, { target }) {
  return checked(command, ['Client.java'], { cwd: folder, env: { ...env, ...environmentOf(target) } });
}

/** @type {Client['run']} */
function runRclone(tool, { target, folder }) {
  const { account, key, blobUrl } = target;
  return runRcloneTests(tool, folder, 'TestAzureBlob', { type: 'azureblob', account, key, endpoint: blobUrl });
}

/** @type {Client['run']} */
async function runRcloneOnShares(tool, { target, folder }) {
  const share = 'rclone';
  await ShareServiceClient.fromConnectionString(target.connectionString).createShare(share);
  const settings = { type: 'azurefiles', share_name: share, connection_string: target.connectionString };
  return runRcloneTests(tool, folder, 'TestAzureFiles', settings);
}

/**
 * rclone's own integration tests, which need nothing but a remote of this name.
 * @param {Tool} tool @param {string} own @param {string} remote @param {Record<string, string>} settings
 */
function runRcloneTests({ command, folder }, own, remote, settings) {
  const config = join(own, 'rclone.conf');
  const lines = Object.entries(settings).map((pair) => pair.join(' = '));
  writeFileSync(config, [`[${remote}]`, ...lines, ''].join('\n'));
  const env = { RCLONE_CONFIG: config, XDG_CACHE_HOME: own };
  const options = { cwd: folder, env, minutes: 40, parse: parseGoTest, failed: [1] };
  return checked(command, ['-test.v', '-test.run', '^TestIntegration', '-test.timeout=40m'], options);
}

/** The crate's own integration tests, as it runs them on an emulator, and as on an account. @type {Client['run']} */
async function runObjectStore({ command, folder }, { target }) {
  const { account, key, blobUrl, authority } = target;
  const service = BlobServiceClient.fromConnectionString(target.connectionString);
  /** @type {Record<string, Record<string, string>>} */
  const modes = {
    emulator: { AZURE_STORAGE_USE_EMULATOR: 'true', AZURITE_BLOB_STORAGE_URL: `http://${authority}` },
    account: { AZURE_STORAGE_ENDPOINT: blobUrl, AZURE_ALLOW_HTTP: 'true' },
  };
  const checks = [];
  for (const [mode, settings] of Object.entries(modes)) {
    await service.createContainer(mode);
    const env = {
      TEST_INTEGRATION: '1',
      AZURE_CONTAINER_NAME: mode,
      AZURE_STORAGE_ACCOUNT_NAME: account,
      AZURE_STORAGE_ACCOUNT_KEY: key,
      ...settings,
    };
    const options = { cwd: folder, env, minutes: 10, parse: parseCargoTest, failed: [101] };
    const found = await checked(command, ['--test-threads=1', 'azure::tests::'], options);
    checks.push(...found.map((check) => ({ ...check, title: `${mode}: ${check.title}` })));
  }
  return checks;
}
