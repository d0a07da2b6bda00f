/** A server in a child process, so that it can crash, which reports its memory on request. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const STDERR_CHARACTERS_MAX = 20_000;

if (process.send && process.argv[2] === '--serve') {
  const { start } = await import('../../dist/index.js');
  const location = process.argv[3];
  const place = location ? { location, testClock: true } : { inMemory: true };
  const server = await start({ blobPort: 0, filePort: 0, ...place, log: { level: 'warn' } });
  process.on('message', async (what) => {
    if (what === 'stop') {
      await server.stop();
      process.exit();
    }
    globalThis.gc?.();
    process.send?.({ bytes: process.memoryUsage().rss });
  });
  const [blob, file] = [server.blobUrl, server.fileUrl].map((url) => Number(new URL(url).port));
  process.send({ ports: { blob, file } });
}

/** @param {string | undefined} location a folder, or memory */
export async function startServer(location) {
  const child = fork(fileURLToPath(import.meta.url), ['--serve', ...(location ? [location] : [])], {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text) => {
      output = (output + text).slice(-STDERR_CHARACTERS_MAX);
    });
  }
  /** @type {{ code: number | null, signal: string | null } | undefined} */
  let end;
  const ended = once(child, 'exit').then(([code, signal]) => {
    end = { code, signal };
  });
  /** @returns {Promise<{ ports: { blob: number, file: number }, bytes: number }>} */
  const nextMessage = async () => {
    const first = await Promise.race([once(child, 'message'), ended]);
    if (!first) throw new Error(`the server ended: ${JSON.stringify(end)}\n${output}`);
    return first[0];
  };
  const { ports } = await nextMessage();
  return {
    ports,
    /** Exit code and signal, once it has ended. */
    end: () => end,
    /** The end of its log. */
    output: () => output,
    async memoryBytes() {
      child.send('memory');
      return (await nextMessage()).bytes;
    },
    async stop() {
      if (!end) child.send('stop');
      await ended;
    },
    kill: () => child.kill('SIGKILL'),
  };
}
