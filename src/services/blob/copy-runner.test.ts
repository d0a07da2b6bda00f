import { describe, expect, it } from 'vitest';
import { ACCOUNT, CONTAINER, openWorld } from '../../../test/support/blob-storage.ts';
import { localSources } from '../../../test/support/local-sources.ts';
import { startCopy } from '../../rules/copy-state.ts';
import { CopyRunner } from '../common/copy-runner.ts';
import type { RemoteSources } from '../common/remote-sources.ts';
import { encodeRunningCopy } from '../common/running-copies.ts';
import { encodeBlobRecord } from './blob-record.ts';
import { blobCopies } from './copy-target.ts';
import { blobKey, runningCopyKey } from './rows.ts';
import { putEmptyContent, readCopied } from './running-copies.ts';

async function open(rescanMilliseconds?: number) {
  const world = await openWorld();
  await world.putContainer();
  const { partition, store: content, sweeper } = world;
  const { epoch } = content.newId();
  const bytes = Buffer.from('bytes');
  const head = { length: bytes.length, etag: 'x', modified: undefined, content: {}, metadata: [] };
  const remote: RemoteSources = {
    open: async () => ({
      head,
      async *bytes() {
        yield bytes;
      },
      close() {},
    }),
    listPages: () => Promise.reject(new Error('not a page blob')),
  };
  const parts = { partition, content, sources: localSources, targets: [blobCopies], sweeper, remote, epoch };
  const common = { ...parts, accounts: () => [ACCOUNT] };
  return {
    world,
    runner: new CopyRunner({ ...common, ...(rescanMilliseconds !== undefined && { rescanMilliseconds }) }),
    /** As a request that ended before it could tell the runner. */
    putCopy: (blob: string) =>
      world.act((tx) => {
        const place = { account: ACCOUNT, container: CONTAINER, blob };
        const copy = startCopy({ id: blob, source: 'http://elsewhere/', bytes: bytes.length });
        const empty = putEmptyContent(tx, place);
        tx.put(
          blobKey(ACCOUNT, CONTAINER, blob),
          encodeBlobRecord({ ...empty, content: {}, metadata: {}, created: 1n, copy }),
        );
        const source = { url: 'http://elsewhere/', etag: 'x', modified: undefined };
        const running = { id: blob, source, content: content.newId(), owner: epoch, started: tx.now, md5: undefined };
        tx.put(runningCopyKey(ACCOUNT, CONTAINER, blob), encodeRunningCopy(running));
      }),
    async ended(blob: string) {
      for (;;) {
        const found = await partition.read((at) => readCopied(at, { account: ACCOUNT, container: CONTAINER, blob }));
        if (found?.copy?.status !== 'pending') return found?.copy;
        await new Promise(setImmediate);
      }
    },
  };
}

describe('The runner of copies', () => {
  it('finds a copy that nobody has told it about', async () => {
    const { runner, putCopy, ended } = await open(0);
    // The scan at the start is over with this one.
    await putCopy('before');
    runner.start(runningCopyKey(ACCOUNT, CONTAINER, 'before'));
    await ended('before');
    await putCopy('one');
    runner.wake();
    expect(await ended('one')).toMatchObject({ id: 'one', bytes: 5, completed: expect.any(BigInt) });
    await runner.stop();
  });

  it('runs what it is told of, more than it runs at a time', async () => {
    const { runner, putCopy, ended } = await open();
    const names = Array.from({ length: 30 }, (_, at) => `copy-${at}`);
    for (const name of names) await putCopy(name);
    for (const name of names) runner.start(runningCopyKey(ACCOUNT, CONTAINER, name));
    for (const name of names) expect((await ended(name))?.completed).toBeDefined();
    await runner.stop();
  });
});
