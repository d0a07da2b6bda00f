/** Linearizability: answers to sixteen clients of a server as users run it, checked against a model. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { restartableServer, root, type Server, startServers, stopServers } from '../support/restartable-servers.ts';
import { report } from './explain.ts';
import { type More, record } from './load.ts';
import { type Bug, planted, temporaryFolder } from './planted-bugs.ts';

const MEMORY = ['--inMemoryPersistence', '--test-clock'];
const onDisk = () => ['--location', temporaryFolder(), '--test-clock'];

/** @param copy of the repository, with a bug */
async function load(flags: readonly string[], work: (more: More, server: Server) => Promise<void>, copy = root) {
  const server = restartableServer(flags, copy);
  onTestFinished(() => stopServers([server]));
  await startServers([server]);
  const seed = Date.now() % 2 ** 31;
  const recorded = await record({ servers: [server], seed, movesClock: true }, (more) => work(more, server));
  return report(recorded);
}

async function killTwice(more: More, server: Server): Promise<void> {
  for (let times = 0; times < 2; times++) {
    await more(400);
    await server.kill();
    await server.start();
  }
  await more(400);
}

describe('The history of sixteen clients is linearizable', { timeout: 120_000 }, () => {
  it('in memory, even when the server is paused for a while', async () => {
    const violations = await load(MEMORY, async (more, server) => {
      await more(600);
      server.pause();
      await sleep(500);
      server.resume();
      await more(600);
    });
    expect(violations).toEqual([]);
  });

  it('on disk, even when the server is killed and restarted', async () => {
    expect(await load(onDisk(), killTwice)).toEqual([]);
  });
});

describe('The checker finds a violation', { timeout: 120_000 }, () => {
  it('when a server forgets an acknowledged write', async () => {
    expect(await load(MEMORY, killTwice)).not.toEqual([]);
  });

  const bugs: Bug[] = [
    {
      title: 'when conditions are not held against the ETag',
      file: 'rules/conditions.js',
      find: /if \(!matchesEtag\(ifMatch, found\)\)\s+return 'ConditionNotMet';\n\s+\}/,
      replace: '}',
    },
    {
      title: 'when a lease is not asked for its id',
      file: 'services/blob/request-checks.js',
      find: /if \(verdict !== 'proceed'\)\s+throw leaseError/,
      replace: "if (verdict === 'LeaseLost') throw leaseError",
    },
    {
      title: 'when a snapshot is up to 20 ms old',
      file: 'partition/lmdb/engine.js',
      find: /const \{ group \} = this;/,
      // The first ones are those of the start, which would miss the account that it has just made.
      replace: `
        globalThis.taken = (globalThis.taken ?? 0) + 1;
        if (globalThis.taken >= 100 && globalThis.kept === undefined) {
          globalThis.kept = this.group;
          setTimeout(() => (globalThis.kept = undefined), 20);
        }
        const group = globalThis.kept ?? this.group;`,
    },
  ];
  for (const bug of bugs) {
    it(bug.title, async () => {
      expect(await load(onDisk(), (more) => more(800), planted(bug))).not.toEqual([]);
    });
  }
});
