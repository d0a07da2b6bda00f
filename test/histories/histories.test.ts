/** Linearizability: answers to sixteen clients of a server as users run it, checked against a model. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { restartableServer, root, type Server, startServers, stopServers } from '../support/restartable-servers.ts';
import { report } from './explain.ts';
import type { InPlaceType } from './in-place-model.ts';
import { type More, record } from './load.ts';
import { type Bug, isFound, planted, temporaryFolder } from './planted-bugs.ts';

const MEMORY = ['--inMemoryPersistence', '--test-clock'];
const onDisk = () => ['--location', temporaryFolder(), '--test-clock'];

interface Run {
  readonly softDelete?: boolean;
  readonly type?: InPlaceType;
  /** Of the repository, with a bug. */
  readonly copy?: string;
}

async function load(
  flags: readonly string[],
  work: (more: More, server: Server) => Promise<void>,
  { softDelete = false, type, copy = root }: Run = {},
) {
  const server = restartableServer(flags, copy);
  onTestFinished(() => stopServers([server]));
  await startServers([server]);
  const seed = Date.now() % 2 ** 31;
  const recorded = await record({ servers: [server], seed, movesClock: true, softDelete, type }, (more) =>
    work(more, server),
  );
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

async function pauseOnce(more: More, server: Server): Promise<void> {
  await more(600);
  server.pause();
  await sleep(500);
  server.resume();
  await more(600);
}

describe.each(['without', 'with'])(
  'The history of sixteen clients %s soft delete is linearizable',
  {
    timeout: 120_000,
  },
  (policy) => {
    const softDelete = policy === 'with';
    it('in memory, even when the server is paused for a while', async () => {
      expect(await load(MEMORY, pauseOnce, { softDelete })).toEqual([]);
    });

    it('on disk, even when the server is killed and restarted', async () => {
      expect(await load(onDisk(), killTwice, { softDelete })).toEqual([]);
    });
  },
);

describe.each(['append', 'page'] as const)(
  'The history of sixteen clients of %s blobs is linearizable',
  { timeout: 120_000 },
  (type) => {
    it('on disk, even when the server is killed and restarted', async () => {
      expect(await load(onDisk(), killTwice, { type, softDelete: true })).toEqual([]);
    });

    it('in memory, even when the server is paused for a while', async () => {
      expect(await load(MEMORY, pauseOnce, { type })).toEqual([]);
    });
  },
);

describe('The checker finds a violation', { timeout: 300_000 }, () => {
  it('when a server forgets an acknowledged write', async () => {
    expect(await load(MEMORY, killTwice)).not.toEqual([]);
  });

  const bugs: (Bug & Pick<Run, 'softDelete' | 'type'>)[] = [
    {
      title: 'when conditions are not held against the ETag',
      file: 'rules/conditions.js',
      find: /if \(!matchesEtag\(ifMatch, found\)\)\s+return 'ConditionNotMet';\n\s+\}/,
      replace: '}',
    },
    {
      title: 'when a lease is not asked for its id',
      file: 'services/common/lease-actions.js',
      find: /if \(verdict !== 'proceed'\)\s+throw refusal/,
      replace: "if (verdict === 'LeaseLost') throw refusal",
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
    {
      title: 'when a deletion of snapshots leaves them there',
      file: 'services/blob/snapshots.js',
      find: /tx\.put\(markKey\(account, id, blob\), encodeMark\(next\)\);/,
      replace: '',
    },
    {
      title: 'when Undelete Blob forgets a snapshot',
      file: 'services/blob/undelete.js',
      find: /tx\.put\(snapshotKey\(account, id, name, stamp\), encodeText\(record\)\);/,
      replace: '',
      softDelete: true,
    },
    {
      title: 'when an append does not look at its position',
      file: 'rules/append.js',
      find: /if \(position !== undefined && position !== length\)\s+return 'AppendPositionConditionNotMet';\s+if \(lengthMax/,
      replace: 'if (lengthMax',
      type: 'append',
    },
    {
      title: 'when a snapshot of an append blob grows with it',
      file: 'content/ranges/pages.js',
      find: /page\.born <= newest/,
      replace: 'page.born < newest',
      type: 'append',
    },
    {
      title: 'when a write of pages does not look at the sequence number',
      file: 'rules/page.js',
      find: /return isMet && \(eq/,
      replace: 'return (isMet || le !== undefined) && (eq',
      type: 'page',
    },
    {
      title: 'when a clear of pages forgets some of them',
      file: 'services/blob/page-blobs.js',
      find: /ranges\.clear\(tx, storage\.account, map, range\.from, range\.to\)/,
      replace: 'ranges.clear(tx, storage.account, map, range.from, range.to - 512)',
      type: 'page',
    },
    {
      title: 'when Undelete Blob forgets a snapshot of a page blob',
      file: 'services/blob/undelete.js',
      find: /tx\.put\(snapshotKey\(account, id, name, stamp\), encodeText\(record\)\);/,
      replace: '',
      softDelete: true,
      type: 'page',
    },
  ];
  for (const bug of bugs) {
    it(bug.title, async () => {
      const copy = planted(bug);
      expect(await isFound(() => load(onDisk(), (more) => more(800), { ...bug, copy }))).toBe(true);
    });
  }
});
