import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { newFolder } from '../support/disposable-servers.ts';
import { missingIn } from './sequence.ts';

const program = fileURLToPath(new URL('../partition/exit.mjs', import.meta.url));

describe('process.exit', () => {
  it.each(['never', '0', '10', '20', '40', '80'])(
    'during a close, %s ms after it began, ends the process and loses nothing',
    {
      timeout: 60_000,
    },
    async (after) => {
      for (const writes of [210, 230, 420]) {
        const location = join(newFolder(), 'rows');
        mkdirSync(location);
        const child = fork(program, [location, String(writes), after], { execArgv: [] });
        onTestFinished(() => void child.kill('SIGKILL'));
        const acknowledged: number[] = [];
        child.on('message', ({ i }: { i: number }) => acknowledged.push(i));
        // lmdb aborts now and then when its thread is ended in the middle of its close; the process ends all the same.
        expect([
          [7, null],
          [null, 'SIGABRT'],
        ]).toContainEqual(await once(child, 'close'));
        expect(await missingIn(location, acknowledged)).toEqual([]);
      }
    },
  );
});
