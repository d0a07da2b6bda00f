/** A Holdfast server with one share, for programs that speak SMB. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ShareServiceClient, StorageSharedKeyCredential } from '@azure/storage-file-share';
import { freePort, listens } from './free-port.mjs';
import { ACCOUNT, ACCOUNT_KEY } from './raw-signing.mjs';
import { launch } from './server-process.mjs';

/**
 * An SMB server under test, on the loopback address.
 * @typedef {object} SmbTarget
 * @property {string} name
 * @property {number} port
 * @property {string} share
 * @property {string} user
 * @property {string} password
 * @property {number | undefined} pid
 * @property {string} folder of its data
 * @property {() => string} log what the server has printed
 * @property {() => Promise<unknown>} stop
 */

const SHARE = 'torture';
const START_TIMEOUT_MS = 20_000;

/**
 * @param {{ flags?: string[], location?: string, before?: string[], imports?: string[] }} [options]
 * @returns {Promise<SmbTarget & { shares: ShareServiceClient, kill: ReturnType<typeof launch>['kill'] }>}
 */
export async function startHoldfastSmb({ flags = [], location, ...options } = {}) {
  const folder = location ?? mkdtempSync(join(tmpdir(), 'holdfast-smb-'));
  const port = await freePort();
  const server = launch(folder, { ...options, flags: ['--smbPort', String(port), '--log-level', 'warn', ...flags] });
  let ended = false;
  void server.ended.then(() => {
    ended = true;
  });
  const ready = (await server.ready) !== undefined && (await listens(port, START_TIMEOUT_MS, () => ended));
  if (!ready) throw new Error(`The server did not start: ${server.stdout()}${server.stderr()}`);
  const url = `${server.origins().File}/${ACCOUNT}`;
  const shares = new ShareServiceClient(url, new StorageSharedKeyCredential(ACCOUNT, ACCOUNT_KEY), {
    retryOptions: { maxTries: 1 },
  });
  await shares.getShareClient(SHARE).createIfNotExists();
  return {
    ...{ name: 'Holdfast', port, share: SHARE, user: ACCOUNT, password: ACCOUNT_KEY, pid: server.pid, folder, shares },
    log: () => server.stdout() + server.stderr(),
    kill: server.kill,
    async stop() {
      await server.kill('SIGTERM');
      if (location === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}
