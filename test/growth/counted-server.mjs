/** A server in memory as a process of its own, whose steps are counted. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

if (process.send && process.argv[2] === '--serve') {
  const { takeSteps } = await import('./steps.mjs');
  const { start } = await import('../../build/index.js');
  const server = await start({ inMemory: true, blobPort: 0, filePort: 0, log: { level: 'error' } });
  process.on('message', () => process.send?.(takeSteps()));
  process.once('disconnect', () => process.exit());
  const { blobUrl: blob, queueUrl: queue, tableUrl: table, fileUrl: file, smbUrl: smb } = server;
  process.send({ blob, queue, table, file, smb });
}

export async function startCountedServer() {
  const child = fork(fileURLToPath(import.meta.url), ['--serve'], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const ended = once(child, 'exit').then(() => undefined);
  const said = async () => {
    const message = await Promise.race([once(child, 'message'), ended]);
    if (!message) throw new Error('the server ended');
    return message[0];
  };
  /** @type {Record<import('../support/raw-requests.mjs').Service | 'smb', string>} */
  const urls = await said();
  return {
    smbUrl: urls.smb,
    /** @param {import('../support/raw-requests.mjs').Service} service */
    port: (service) => Number(new URL(urls[service]).port),
    /** Of all that it did since it was asked last. @returns {Promise<number>} */
    takeSteps: () => {
      child.send('steps');
      return said();
    },
    stop: () => child.disconnect(),
  };
}
