/** A minimal service of blobs and blocks on the content store, for the model test. */
import type { UploadedContent } from '../../src/content/content.ts';
import {
  type ChunkRef,
  type ContentId,
  decodeChunk,
  decodeContent,
  decodeContentDeletion,
  decodeManifestPage,
  deletionsIn,
  encodeManifestPage,
  formatId,
  liveBytesIn,
  parseId,
  type Segment,
} from '../../src/content/rows.ts';
import { decodeKey, encodeKey, type Key, keysUnder } from '../../src/partition/keys.ts';
import type { Row, Snapshot, Transaction } from '../../src/partition/partition.ts';
import { decodeBytes, decodeCounter, encodeBytes } from '../../src/partition/values.ts';
import type { Chosen, ModelPiece, Stored } from './content-model.ts';
import { account, bytesFrom, inPieces, type Opened } from './content-store.ts';

export type Blobs = ReturnType<typeof blobsIn>;

/** The rows of the service: a blob's row references its content, a block's row its chunks. */
const blobKey = (blob: string): Key => encodeKey([account, 'b', blob]);
const blockKey = (label: string): Key => encodeKey([account, 'y', label]);
const blocks = keysUnder([account, 'y']);
const txQueueKey = (name: string): Key => encodeKey(['queue', name]);
const EVERYTHING = { limit: 10_000 };

const chunkRefsIn = (segments: readonly Segment[]): ChunkRef[] => segments.flatMap(({ chunkRefs }) => chunkRefs);

export function blobsIn({ partition, store, reads }: Opened) {
  /** Uploads a segment in this many chunks. */
  async function takePiece({ label, bytes }: ModelPiece, count: number) {
    const size = Math.ceil(bytes.length / count);
    const uploads: UploadedContent[] = [];
    for await (const buffer of inPieces(bytes, size)) {
      uploads.push(await store.upload(account, inPieces(buffer, 50), buffer.length, { md5: false }));
    }
    const segment: Segment = { label, length: bytes.length, chunkRefs: uploads.flatMap(({ chunkRefs }) => chunkRefs) };
    return {
      segment,
      async name(tx: Transaction) {
        for (const each of uploads) await store.commitUpload(tx, account, each);
      },
      release() {
        for (const each of uploads) each.release();
      },
    };
  }

  async function contentOf(at: Snapshot, blob: string): Promise<ContentId | undefined> {
    const row = await at.get(blobKey(blob));
    return row && parseId(decodeBytes(row).toString());
  }

  async function setContent(tx: Transaction, blob: string, id: ContentId | undefined): Promise<void> {
    const old = await contentOf(tx, blob);
    if (old) await store.decrefContent(tx, account, old);
    if (id) tx.put(blobKey(blob), encodeBytes(Buffer.from(formatId(id))));
    else tx.remove(blobKey(blob));
  }

  async function allSegments(at: Snapshot, id: ContentId): Promise<Segment[]> {
    const all: Segment[] = [];
    for (let offset = 0; ; ) {
      const { segments } = await store.segmentsFrom(at, account, id, offset);
      if (segments.length === 0) return all;
      all.push(...segments);
      for (const { length } of segments) offset += length;
    }
  }

  async function choose(at: Snapshot, blob: string, chosen: readonly Chosen[]): Promise<Segment[]> {
    const id = await contentOf(at, blob);
    const old = id ? await allSegments(at, id) : [];
    const segments: Segment[] = [];
    for (const one of chosen) {
      const row = 'staged' in one ? await at.get(blockKey(one.staged)) : undefined;
      const segment = 'staged' in one ? row && decodeManifestPage(row)[0] : old[one.committed];
      if (segment) segments.push(segment);
    }
    return segments;
  }

  async function dropBlocks(tx: Transaction): Promise<void> {
    const rows = await tx.scan(blocks, EVERYTHING);
    await store.decrefChunks(tx, account, chunkRefsIn(rows.flatMap(decodeManifestPage)));
    for (const { key } of rows) tx.remove(key);
  }

  async function put(blob: string, body: ModelPiece, count: number): Promise<void> {
    const { segment, name, release } = await takePiece(body, count);
    const id = store.newId();
    await partition.transact(txQueueKey(blob), async (tx) => {
      await name(tx);
      store.addContent(tx, account, id, [segment]);
      await setContent(tx, blob, id);
    });
    release();
  }

  async function stage(label: string, body: ModelPiece, count: number): Promise<void> {
    const { segment, name, release } = await takePiece(body, count);
    await partition.transact(txQueueKey('blocks'), async (tx) => {
      await name(tx);
      const old = await tx.get(blockKey(label));
      if (old) await store.decrefChunks(tx, account, chunkRefsIn(decodeManifestPage(old)));
      tx.put(blockKey(label), encodeManifestPage([segment]));
    });
    release();
  }

  async function commit(blob: string, chosen: readonly Chosen[]): Promise<void> {
    const id = store.newId();
    await partition.transact(txQueueKey(blob), async (tx) => {
      const segments = await choose(tx, blob, chosen);
      if (segments.length === 0) return;
      await store.increfChunks(tx, account, chunkRefsIn(segments));
      store.addContent(tx, account, id, segments);
      await setContent(tx, blob, id);
      await dropBlocks(tx);
    });
  }

  /** Builds a pending content, one segment per transaction. */
  async function prepare(blob: string, chosen: readonly Chosen[]) {
    const id = store.newId();
    const { value: pendingKey } = await partition.transact(txQueueKey(blob), (tx) =>
      store.beginPending(tx, account, id),
    );
    const segments = await partition.read((at) => choose(at, blob, chosen));
    let length = 0;
    for (const segment of segments) {
      await partition.transact(txQueueKey(blob), async (tx) => {
        await store.increfChunks(tx, account, segment.chunkRefs);
        await store.addSegments(tx, account, id, length, [segment]);
      });
      length += segment.length;
    }
    return { id, pendingKey, length };
  }

  async function commitPending(blob: string, chosen: readonly Chosen[]): Promise<void> {
    const { id, pendingKey, length } = await prepare(blob, chosen);
    await partition.transact(txQueueKey(blob), async (tx) => {
      if (length === 0) return store.abandonPending(tx, id, pendingKey);
      await store.finishPending(tx, account, id, pendingKey, length);
      await setContent(tx, blob, id);
      await dropBlocks(tx);
    });
  }

  async function giveUp(blob: string, chosen: readonly Chosen[]): Promise<void> {
    const { id, pendingKey } = await prepare(blob, chosen);
    await partition.transact(txQueueKey(blob), async (tx) => store.abandonPending(tx, id, pendingKey));
  }

  async function copy(from: string, to: string): Promise<void> {
    await partition.transact(txQueueKey(to), async (tx) => {
      const id = await contentOf(tx, from);
      if (!id) return;
      await store.increfContent(tx, account, id);
      await setContent(tx, to, id);
    });
  }

  async function drop(blob: string): Promise<void> {
    await partition.transact(txQueueKey(blob), (tx) => setContent(tx, blob, undefined));
  }

  /** One slice of the first entry of the deletion queue that is not pending. False: there was none. */
  async function sweep(): Promise<boolean> {
    const rows = await partition.read((at) => at.scan(deletionsIn(account), EVERYTHING));
    await reads.whenReached(reads.next());
    for (const row of rows) {
      const deletion = decodeContentDeletion(row);
      if (!deletion || deletion.pending) continue;
      await partition.transact(row.key, async (tx) => {
        if (await store.sweepContent(tx, account, parseId(deletion.content))) tx.remove(row.key);
      });
      return true;
    }
    return false;
  }

  async function read(blob: string, from: number, to: number): Promise<Buffer | undefined> {
    const reading = store.beginRead();
    const found = await partition.read(async (at) => {
      const id = await contentOf(at, blob);
      if (!id) return false;
      const length = chunkRefsIn(await allSegments(at, id)).reduce((sum, ref) => sum + ref.length, 0);
      await reading.plan(at, account, id, Math.min(from, length), Math.min(to, length));
      return true;
    });
    if (found) return bytesFrom(reading.stream());
    reading.end();
    return undefined;
  }

  /** All rows, as plain data. */
  async function stored(): Promise<Stored> {
    return partition.read(async (at) => {
      const rowsOf = (type: string): Promise<Row[]> => at.scan(keysUnder([account, type]), EVERYTHING);
      const idIn = ({ key }: Row) => decodeKey(key).slice(2, 4).join('-');
      const chunkNames = (segments: readonly Segment[]) => chunkRefsIn(segments).map(({ chunk }) => formatId(chunk));
      const [heads, cells, contents, chunks] = [
        await rowsOf('b'),
        await rowsOf('m'),
        await rowsOf('c'),
        await rowsOf('k'),
      ];
      return {
        heads: heads.map((row) => decodeBytes(row).toString()),
        trashed: (await at.scan(deletionsIn(account), EVERYTHING)).map(
          (row) => decodeContentDeletion(row)?.content ?? '',
        ),
        blocks: (await at.scan(blocks, EVERYTHING)).map((row) => chunkNames(decodeManifestPage(row))),
        cells: cells.map((row) => ({ content: idIn(row), chunks: chunkNames(decodeManifestPage(row)) })),
        contents: contents.map((row) => ({ id: idIn(row), refs: decodeContent(row).refs })),
        chunks: chunks.map((row) => {
          const { place, refs } = decodeChunk(row);
          return { id: idIn(row), refs, extent: place.extent, length: place.length };
        }),
        live: Object.fromEntries(
          (await at.scan(liveBytesIn(account), EVERYTHING)).map((row) => [
            decodeKey(row.key)[2] as string,
            Number(decodeCounter(row)),
          ]),
        ),
      };
    });
  }

  return { takePiece, put, stage, commit, commitPending, giveUp, copy, drop, sweep, read, stored };
}
