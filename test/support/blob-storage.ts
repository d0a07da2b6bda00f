/** Blobs, small ones and blocks in a container of one account, written as rows; and a sweeper. */

import { formatId } from '../../src/content/rows.ts';
import { crc64Base64 } from '../../src/hashing/hasher.ts';
import { decodeKey, encodeKey, keysUnder } from '../../src/partition/keys.ts';
import type { Transaction } from '../../src/partition/partition.ts';
import { encodeBytes, encodeValue } from '../../src/partition/values.ts';
import { encodeBlobRecord } from '../../src/services/blob/blob-record.ts';
import {
  blobKey,
  blockKey,
  encodeBlock,
  encodeProperties,
  encodeUncommitted,
  expiryKey,
  inlineKey,
  nameKey,
  propertiesKey,
  type UncommittedBlocks,
  uncommittedExpiry,
  uncommittedKey,
} from '../../src/services/blob/rows.ts';
import { putAccount } from '../../src/services/common/account-rows.ts';
import { encodeName } from '../../src/services/common/names.ts';
import { startSweeper } from '../../src/services/maintenance/sweeper.ts';
import { bytesOfSeed, inPieces, openStore } from './content-store.ts';

export const ACCOUNT = 7n;
export const CONTAINER = 40n;

export async function openWorld(extents?: Parameters<typeof openStore>[0]) {
  const opened = await openStore(extents);
  const { partition, reads, store } = opened;
  const failures: string[] = [];
  const dues = new Map<string, bigint>();
  const start = () =>
    startSweeper({
      partition,
      content: store,
      accounts: () => [ACCOUNT],
      lowWatermark: reads,
      onFailure: (error) => failures.push((error as Error).message),
    });
  const sweeper = start();
  await partition.transact(encodeKey(['account']), async (tx) =>
    putAccount(tx, { id: ACCOUNT, name: 'seven', keys: ['a2V5'], from: 'command' }),
  );
  const act = async <T>(body: (tx: Transaction) => Promise<T> | T): Promise<T> =>
    (await partition.transact(encodeKey([ACCOUNT, 'test']), async (tx) => body(tx))).value;
  const take = (length: number) =>
    store.upload(ACCOUNT, inPieces(bytesOfSeed(length, length), 70_000), length, { md5: false });
  const head = { content: {}, metadata: {}, created: 1n };
  const newStage = (id: UncommittedBlocks['id'], now: bigint, blocks: number): UncommittedBlocks => ({
    id,
    created: 1n,
    idLength: 2,
    count: blocks,
    gen: 0,
    touched: now,
    due: uncommittedExpiry(now),
  });

  return {
    ...opened,
    sweeper,
    failures,
    dues,
    act,
    newStage,
    restart: start,
    stop: () => sweeper.stop(),
    async sweep() {
      sweeper.wake();
      await sweeper.idle();
    },
    async putContainer() {
      await act((tx) => {
        tx.put(nameKey(ACCOUNT, 'box'), encodeName(CONTAINER));
        tx.put(propertiesKey(ACCOUNT, CONTAINER), encodeProperties({ metadata: {}, policies: [] }));
      });
    },
    async putBlob(blob: string, length: number) {
      const taken = await take(length);
      const id = store.newId();
      await act(async (tx) => {
        await store.commitUpload(tx, ACCOUNT, taken);
        store.addContent(tx, ACCOUNT, id, [{ length, chunkRefs: taken.chunkRefs }]);
        tx.put(blobKey(ACCOUNT, CONTAINER, blob), encodeBlobRecord({ ...head, length, contentId: formatId(id) }));
      });
      taken.release();
      return id;
    },
    async putInline(blob: string) {
      await act((tx) => {
        tx.put(
          blobKey(ACCOUNT, CONTAINER, blob),
          encodeBlobRecord({ ...head, length: 3, crc64: crc64Base64(Buffer.from('abc')) }),
        );
        tx.put(inlineKey(ACCOUNT, CONTAINER, blob), encodeBytes(Buffer.from('abc')));
      });
    },
    async putStage(blob: string, blocks: number) {
      const id = store.newId();
      const staged = await Promise.all(Array.from({ length: blocks }, () => take(50)));
      await act(async (tx) => {
        for (const [i, taken] of staged.entries()) {
          await store.commitUpload(tx, ACCOUNT, taken);
          const block = Buffer.alloc(2);
          block.writeUInt16BE(i);
          tx.put(blockKey(ACCOUNT, id, block), encodeBlock({ length: taken.length, chunkRefs: taken.chunkRefs }));
        }
        const stage = newStage(id, tx.now, blocks);
        dues.set(blob, stage.due);
        tx.put(uncommittedKey(ACCOUNT, CONTAINER, blob), encodeUncommitted(stage));
        tx.put(expiryKey(ACCOUNT, stage.due, CONTAINER, blob), encodeValue({}));
      });
      for (const taken of staged) taken.release();
      return id;
    },
    /** How many rows there are of each kind. */
    async kinds(): Promise<Record<string, number>> {
      const rows = await partition.read((at) => at.scan(keysUnder([ACCOUNT]), { limit: 10_000 }));
      const counts: Record<string, number> = {};
      for (const { key } of rows) {
        const kind = decodeKey(key)[1] as string;
        counts[kind] = (counts[kind] ?? 0) + 1;
      }
      return counts;
    },
  };
}
