import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { newFolder, serve } from '../support/disposable-servers.ts';
import { randomOf } from '../support/random.mjs';
import { checkFolder, launch, run } from '../support/server-process.mjs';

const ROUNDS = 12;
const START_MILLISECONDS = 600;
const CLOSE_MILLISECONDS = 10;
const exits = fileURLToPath(new URL('./exits.mjs', import.meta.url));

/** A process that hangs is found by the test's time limit, which is far above what an end takes. */
describe('Two signals', { timeout: 120_000 }, () => {
  const seed = Date.now() % 1_000_000;
  const random = randomOf(seed);

  it('end the process during its start, at whatever point they come', async () => {
    console.log(`seed ${seed}`);
    const location = newFolder();
    for (let round = 0; round < ROUNDS; round++) {
      const program = launch(location);
      await pause(random.below(START_MILLISECONDS));
      program.signal('SIGTERM');
      await pause(random.below(CLOSE_MILLISECONDS));
      program.signal('SIGTERM');
      expect([
        { code: 0, signal: null },
        { code: null, signal: 'SIGTERM' },
      ]).toContainEqual(await program.ended);
    }
    const server = await serve(location);
    expect((await server.client.createContainer('one')).status).toBe(201);
  });

  it('end the process during its stop, and nothing acknowledged is lost', async () => {
    const location = newFolder();
    const names: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const server = await serve(location);
      if (round === 0) await server.client.createContainer('one');
      const name = `blob-${String(round).padStart(2, '0')}`;
      expect((await server.client.putBlob(`one/${name}`, Buffer.from(name))).status).toBe(201);
      names.push(name);
      server.signal('SIGTERM');
      await pause(random.below(CLOSE_MILLISECONDS));
      server.signal('SIGTERM');
      expect([
        { code: 0, signal: null },
        { code: null, signal: 'SIGTERM' },
      ]).toContainEqual(await server.ended);
    }
    expect(await checkFolder(location)).toMatchObject({ code: 0 });
    const server = await serve(location);
    expect(await server.client.listBlobs('one')).toEqual(names);
  });
});

describe('process.exit', { timeout: 120_000 }, () => {
  it('ends a program whose server is still stopping', async () => {
    const location = newFolder();
    for (let round = 0; round < ROUNDS; round++) {
      const { code, signal } = await run([process.execPath, exits, location, String(round % 6)]).ended;
      expect(signal ?? code).toBe(signal ? 'SIGKILL' : 3);
    }
    await serve(location);
  });
});
