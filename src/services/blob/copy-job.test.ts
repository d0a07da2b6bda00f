/** Running copies as rows: who runs them, what they leave when they end, and what a process that was stopped leaves to the next. */
import { describe, expect, it } from 'vitest';
import { ACCOUNT, CONTAINER } from '../../../test/support/blob-storage.ts';
import { base, openCopies, stopAfterUploads } from '../../../test/support/running-copies.ts';
import { epochKey } from '../../content/rows.ts';
import { encodeKey } from '../../partition/keys.ts';
import { encodeValue } from '../../partition/values.ts';
import type { JobContext } from '../common/copy-job.ts';
import { StorageError } from '../common/errors.ts';
import type { RemoteSources } from '../common/remote-sources.ts';
import { decodeRunningCopy, encodeRunningCopy } from '../common/running-copies.ts';
import { abortCopy } from './pending-copies.ts';
import { scheduleContainerDeletion } from './rows.ts';
import { placeOfCopy, putProgress } from './running-copies.ts';

const MIB = 1 << 20;
const LENGTH = 40 * MIB;

describe('A running copy', () => {
  it('goes on where it was stopped, in a process with another epoch', async () => {
    const { put, start, run, state, bytes, findings, context, partition, epoch } = await openCopies();
    const source = Buffer.alloc(LENGTH, 'some bytes ');
    await put(source);
    const key = await start();
    const { signal, content } = stopAfterUploads(context, 2);
    await run(key, signal, { content });
    expect((await state()).copy).toMatchObject({ status: 'pending', copied: 32 * MIB, bytes: LENGTH });
    expect(await findings()).toEqual([]);
    const row = (await partition.read((at) => at.get(key)))!;
    const gone = epoch - 1n;
    await partition.transact(key, async (tx) => {
      tx.put(key, encodeRunningCopy({ ...decodeRunningCopy(row), owner: gone }));
      tx.put(epochKey(gone), encodeValue({}));
    });
    // Its process is still a member.
    await run(key);
    expect((await state()).copy?.copied).toBe(32 * MIB);
    await partition.transact(key, async (tx) => tx.remove(epochKey(gone)));
    await run(key);
    expect((await state()).copy).toMatchObject({ bytes: LENGTH, completed: expect.any(BigInt) });
    expect((await bytes()).equals(source)).toBe(true);
    expect(await findings()).toEqual([]);
  });

  it('fails if its source was overwritten after it began, with the same length, too', async () => {
    const { put, start, run, state, findings } = await openCopies();
    await put(Buffer.alloc(LENGTH, 'one '));
    const key = await start();
    await put(Buffer.alloc(LENGTH, 'two '));
    await run(key);
    const found = await state();
    expect(found.copy).toMatchObject({
      status: 'failed',
      description: '412 ConditionNotMet "Copy failed when reading the source."',
    });
    expect(found.length).toBe(0);
    expect(await findings()).toEqual([]);
  });

  it.each(['aborted', 'deleted'])('leaves nothing when it is %s in the middle, and its job stops', async (how) => {
    const { world, put, start, run, storage, context, state, findings } = await openCopies();
    await put(Buffer.alloc(LENGTH, 'some bytes '));
    const key = await start();
    const { signal, content } = stopAfterUploads(context, 1);
    await run(key, signal, { content });
    if (how === 'aborted') {
      const { copy } = await state();
      await abortCopy(storage, { ...base('box', 'to'), copyId: copy!.id });
      expect(await findings()).toEqual([]);
      await run(key);
      expect((await state()).copy).toMatchObject({ status: 'aborted', copied: 16 * MIB });
    } else {
      await world.act(async (tx) => {
        tx.remove(encodeKey([ACCOUNT, 'n', 'blob', 'box']));
        tx.remove(encodeKey([ACCOUNT, 'p', 'blob', CONTAINER]));
        scheduleContainerDeletion(tx, ACCOUNT, CONTAINER);
      });
      expect(await findings()).toEqual([]);
    }
    await world.sweep();
    const left = how === 'aborted' ? { n: 1, p: 1, b: 1, i: 1 } : {};
    expect(await world.kinds()).toEqual(left);
    expect(await findings()).toEqual([]);
  });

  it.each(['its container is being deleted', 'another process has taken it over'])(
    'does not commit once %s',
    async (why) => {
      const { world, put, start, run, context, partition, state } = await openCopies();
      await put(Buffer.alloc(20_000, 'x'));
      const key = await start();
      const row = (await partition.read((at) => at.get(key)))!;
      const content = {
        ...context.content,
        async upload(...given: Parameters<JobContext['content']['upload']>) {
          await world.act((tx) => {
            tx.put(epochKey(1n), encodeValue({}));
            if (why.startsWith('another')) tx.put(key, encodeRunningCopy({ ...decodeRunningCopy(row), owner: 1n }));
            else tx.remove(encodeKey([ACCOUNT, 'p', 'blob', CONTAINER]));
          });
          stopping.abort();
          return context.content.upload(...given);
        },
      };
      // The upload itself is not stopped: the commit decides.
      const stopping = new AbortController();
      const deaf = { aborted: false, throwIfAborted() {} } as unknown as AbortSignal;
      const stoppable = Object.defineProperty(deaf, 'aborted', { get: () => stopping.signal.aborted });
      await run(key, stoppable, { content });
      expect((await state()).copy).toMatchObject({ status: 'pending', copied: 0 });
    },
  );

  it('is tried eight times in a row while its source does not answer, and says so', async () => {
    const descriptions = new Set<string | undefined>();
    const head = { length: LENGTH, etag: 'x', modified: undefined, content: {}, metadata: [] };
    let opened = 0;
    const remote: RemoteSources = {
      async open() {
        if (opened++ > 0) {
          descriptions.add((await state()).copy?.description?.replace(/failure: .*/, 'failure'));
          throw new StorageError('BadGateway', 502, 'no answer');
        }
        return { head, bytes: async function* () {}, close() {} };
      },
      listPages: () => Promise.reject(new Error('not a page blob')),
    };
    const { start, run, state, findings } = await openCopies(remote);
    await run(await start('http://elsewhere/x'));
    expect(opened).toBe(1 + 9);
    expect([...descriptions]).toEqual([
      undefined,
      '502 BadGateway "Encountered a retryable error when reading the source. Will retry. Time of failure',
    ]);
    expect((await state()).copy).toMatchObject({
      status: 'failed',
      description: '500 OperationCancelled "The copy failed when reading the source."',
    });
    expect(await findings()).toEqual([]);
  });
});

describe('check', () => {
  it('finds a pending copy that does not run, one that its blob does not know, and one with other bytes', async () => {
    const { put, start, partition, state, findings } = await openCopies();
    await put(Buffer.alloc(LENGTH, 'some bytes '));
    const key = await start();
    const row = (await partition.read((at) => at.get(key)))!;
    const copy = decodeRunningCopy(row);
    await partition.transact(key, async (tx) => tx.remove(key));
    expect(await findings()).toEqual([expect.stringContaining('a copy onto it is pending and does not run')]);
    await partition.transact(key, async (tx) => tx.put(key, encodeRunningCopy({ ...copy, id: 'another' })));
    expect(await findings()).toEqual([expect.stringContaining('a copy that its blob does not know')]);
    await partition.transact(key, async (tx) => tx.put(key, encodeRunningCopy(copy)));
    expect(await findings()).toEqual([]);
    const found = await state();
    await partition.transact(key, async (tx) =>
      putProgress(tx, placeOfCopy(key), found, { ...found.copy!, copied: 5 }),
    );
    expect(await findings()).toEqual([expect.stringContaining('it has 0 bytes, not 5')]);
  });
});
