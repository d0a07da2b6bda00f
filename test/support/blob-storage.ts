/** Blobs, inline blobs and uncommitted blocks in a container of one account, written as rows; and a sweeper. */
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
  const expiries = new Map<string, bigint>();
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
  const act = async <T>(fn: (tx: Transaction) => Promise<T> | T): Promise<T> =>
    (await partition.transact(encodeKey([ACCOUNT, 'test']), async (tx) => fn(tx))).value;
  const upload = (length: number) =>
    store.upload(ACCOUNT, inPieces(bytesOfSeed(length, length), 70_000), length, { md5: false });
  const record = { content: {}, metadata: {}, created: 1n };
  const newUncommitted = (id: UncommittedBlocks['id'], now: bigint, blocks: number): UncommittedBlocks => ({
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
    expiries,
    act,
    newUncommitted,
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
      const uploaded = await upload(length);
      const id = store.newId();
      await act(async (tx) => {
        await store.commitUpload(tx, ACCOUNT, uploaded);
        store.addContent(tx, ACCOUNT, id, [{ length, chunkRefs: uploaded.chunkRefs }]);
        tx.put(blobKey(ACCOUNT, CONTAINER, blob), encodeBlobRecord({ ...record, length, contentId: formatId(id) }));
      });
      uploaded.release();
      return id;
    },
    async putInline(blob: string) {
      await act((tx) => {
        tx.put(
          blobKey(ACCOUNT, CONTAINER, blob),
          encodeBlobRecord({ ...record, length: 3, crc64: crc64Base64(Buffer.from('abc')) }),
        );
        tx.put(inlineKey(ACCOUNT, CONTAINER, blob), encodeBytes(Buffer.from('abc')));
      });
    },
    async putUncommitted(blob: string, blocks: number) {
      const id = store.newId();
      const uploads = await Promise.all(Array.from({ length: blocks }, () => upload(50)));
      await act(async (tx) => {
        for (const [i, uploaded] of uploads.entries()) {
          await store.commitUpload(tx, ACCOUNT, uploaded);
          const block = Buffer.alloc(2);
          block.writeUInt16BE(i);
          tx.put(blockKey(ACCOUNT, id, block), encodeBlock({ length: uploaded.length, chunkRefs: uploaded.chunkRefs }));
        }
        const uncommitted = newUncommitted(id, tx.now, blocks);
        expiries.set(blob, uncommitted.due);
        tx.put(uncommittedKey(ACCOUNT, CONTAINER, blob), encodeUncommitted(uncommitted));
        tx.put(expiryKey(ACCOUNT, uncommitted.due, CONTAINER, blob), encodeValue({}));
      });
      for (const uploaded of uploads) uploaded.release();
      return id;
    },
    /** The number of rows of each kind. */
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
