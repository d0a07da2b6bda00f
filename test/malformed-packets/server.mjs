/** A server in a child process, so that it can crash, which empties its share and reports its memory on request. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { ShareServiceClient } from '@azure/storage-file-share';
import { ACCOUNT, ACCOUNT_KEY } from '../support/raw-signing.mjs';

const OUTPUT_CHARACTERS_MAX = 20_000;
const SHARE = 'fuzz';
const WATCHED_SHARE = 'watched';

if (process.send && process.argv[2] === '--serve') {
  const { start } = await import('../../dist/index.js');
  const server = await start({ inMemory: true, blobPort: 0, log: { level: 'warn' } });
  const shares = ShareServiceClient.fromConnectionString(server.connectionString);
  const share = shares.getShareClient(SHARE);
  await shares.getShareClient(WATCHED_SHARE).create();
  process.on('message', async (what) => {
    if (what === 'stop') {
      await server.stop();
      process.exit();
    }
    if (what === 'prepare') {
      await share.deleteIfExists();
      await share.create();
    }
    globalThis.gc?.();
    process.send?.({ bytes: process.memoryUsage().rss });
  });
  process.send({ port: Number(new URL(server.smbUrl).port) });
}

export async function startServer() {
  const child = fork(fileURLToPath(import.meta.url), ['--serve'], {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text) => {
      output = (output + text).slice(-OUTPUT_CHARACTERS_MAX);
    });
  }
  /** @type {{ code: number | null, signal: string | null } | undefined} */
  let end;
  const ended = once(child, 'exit').then(([code, signal]) => {
    end = { code, signal };
  });
  const nextMessage = async () => {
    const first = await Promise.race([once(child, 'message'), ended]);
    if (!first) throw new Error(`the server ended: ${JSON.stringify(end)}\n${output}`);
    return first[0];
  };
  const order = (/** @type {string} */ what) => {
    child.send(what);
    return nextMessage();
  };
  const { port } = await nextMessage();
  return {
    ...{ port, share: SHARE, watchedShare: WATCHED_SHARE, user: ACCOUNT, password: ACCOUNT_KEY },
    /** Exit code and signal, once it has ended. */
    end: () => end,
    /** The end of its log. */
    output: () => output,
    /** Makes the share anew. Connections to it are lost. */
    prepare: () => order('prepare'),
    memoryBytes: async () => /** @type {number} */ ((await order('memory')).bytes),
    async stop() {
      if (!end) child.send('stop');
      await ended;
    },
  };
}
