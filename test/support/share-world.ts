/** A share whose clients are processes that can be killed before or after any of their commits, and a picture of its whole tree. */
import { createHash } from 'node:crypto';
import { createChunkChecker } from '../../src/content/chunk-check.ts';
import { createContentStore } from '../../src/content/content-store.ts';
import { createActiveReads } from '../../src/content/gc/active-reads.ts';
import { activeEpochs, takeOverEpoch } from '../../src/content/membership/epochs.ts';
import { deletionsIn, parseId } from '../../src/content/rows.ts';
import { openMemoryExtents } from '../../src/extents/memory.ts';
import { encodeKey, keysUnder } from '../../src/partition/keys.ts';
import type { Engine, Instant } from '../../src/partition/partition.ts';
import { openPartition } from '../../src/partition/transact.ts';
import { putAccount } from '../../src/services/common/account-rows.ts';
import { decodeDeletion } from '../../src/services/common/deletions.ts';
import type { Storage } from '../../src/services/common/storage.ts';
import { getDirectory } from '../../src/services/file/directories.ts';
import { getFile } from '../../src/services/file/files.ts';
import { listDirectory } from '../../src/services/file/listing.ts';
import type { Node } from '../../src/services/file/node-rows.ts';
import { downloadFile, listRanges } from '../../src/services/file/reads.ts';
import { readShare } from '../../src/services/file/rows.ts';
import { listShareSnapshots } from '../../src/services/file/share-snapshots.ts';
import { createShare, deleteShare } from '../../src/services/file/shares.ts';
import { check } from '../../src/services/maintenance/check.ts';
import { sweepSlice } from '../../src/services/maintenance/sweep-slice.ts';
import { watchedHashers } from './content-store.ts';
import { type Kill, killable } from './killable-partition.ts';
import { localSources } from './local-sources.ts';

export const ACCOUNT = 7n;

/** A directory or file as a read shows it. */
export interface Pictured {
  readonly kind: Node['kind'];
  readonly id: bigint;
  /** Whatever else the answer has. */
  readonly properties: unknown;
  readonly bytes?: Buffer | undefined;
  /** The sectors that were written. */
  readonly written?: readonly number[] | undefined;
}

/** A directory or file in a form that is compared fast. */
export function comparable({ bytes, ...pictured }: Pictured) {
  return { ...pictured, bytes: bytes && createHash('sha1').update(bytes).digest('hex') };
}

/** By path; the root has none. */
export type Picture = ReadonlyMap<string, Pictured>;

export interface RangeOfFile {
  readonly from: number;
  readonly to: number;
  readonly isWritten: boolean;
}

export type ShareWorld = Awaited<ReturnType<typeof openShareWorld>>;

/** @param engines one for each process */
export async function openShareWorld(engines: readonly Engine[]) {
  const reals = engines.map((engine) => openPartition(engine));
  const real = reals[0]!;
  let kill: Kill | undefined;
  const partitions = reals.map((each) => killable(each, () => kill));
  await real.transact(encodeKey(['account']), async (tx) =>
    putAccount(tx, { id: ACCOUNT, name: 'seven', keys: ['a2V5'], from: 'command' }),
  );
  let epoch = await takeOverEpoch(real);
  const extents = openMemoryExtents({ epoch, extentBytesMax: 4 << 20 });
  /** Long reads that have ended are released after their answers. */
  const releases = new Set<Promise<void>>();
  const open = () => {
    const reads = createActiveReads();
    // One for all processes: it gives every id once.
    const store = createContentStore({
      ...{ partition: partitions[0]!, extents, epoch, reads, hashers: watchedHashers() },
      mapPagesMax: 2,
    });
    const releaseRead: typeof store.ranges.releaseRead = (account, held) => {
      const released = store.ranges.releaseRead(account, held);
      releases.add(released);
      return released;
    };
    return { reads, content: { ...store, ranges: { ...store.ranges, releaseRead } } };
  };
  let processes = open();
  let shares = 0;

  const world = {
    /** Of one of the processes. */
    client(i = 0): Storage {
      const at = i % partitions.length;
      const storage = { partition: partitions[at]!, account: ACCOUNT, content: processes.content };
      return { ...storage, sweeper: { wake() {} }, sources: localSources };
    },
    partition: real,
    killAt(at: Kill | undefined) {
      kill = at;
    },
    async restart() {
      kill = undefined;
      epoch = await takeOverEpoch(real);
      processes = open();
    },
    async newShare(): Promise<string> {
      const share = `share${shares++}`;
      await createShare(world.client(), { share, metadata: [], quota: undefined, tier: undefined });
      return share;
    },
    async dropShare(share: string): Promise<void> {
      await deleteShare(world.client(), { share, leaseId: undefined, deleteSnapshots: 'include-leased' });
    },
    /** In order. */
    snapshots: (share: string): Promise<Instant[]> =>
      real.read(async (at) => {
        const found = await readShare(at, { account: ACCOUNT }, share);
        return (await listShareSnapshots(at, found)).map(({ second }) => second);
      }),
    /** One slice of every entry that is ready. True: something was left to do. */
    async sweep(): Promise<boolean> {
      const [rows, living] = await real.read((at) =>
        Promise.all([at.scan(deletionsIn(ACCOUNT), { limit: 1_000 }), activeEpochs(at)]),
      );
      let isBusy = false;
      for (const row of rows) {
        const deletion = decodeDeletion(row);
        const waits = ['content', 'generation', 'shareSnapshot'].includes(deletion.kind);
        if (waits && processes.reads.oldest() < Infinity) continue;
        const isPending = 'pending' in deletion && deletion.pending === true;
        const owner = deletion.kind === 'generation' ? deletion.read : deletion.kind === 'content' && deletion.content;
        if (isPending && living.has(parseId(owner || '0-0').epoch)) continue;
        isBusy = true;
        const { partition, content } = world.client();
        await sweepSlice({ partition, content }, ACCOUNT, row);
      }
      return isBusy;
    },
    /** All that can be swept is, also what a killed process held. */
    async settle(): Promise<void> {
      await Promise.allSettled(releases);
      releases.clear();
      await world.restart();
      while (await world.sweep());
    },
    rows: (kind: string) => real.read((at) => at.scan(keysUnder([ACCOUNT, kind]), { limit: 100_000 })),
    async findings(): Promise<readonly string[]> {
      return (await check(real, createChunkChecker(real, extents))).findings;
    },
    /** Of the current state, or of a snapshot. */
    async picture(share: string, snapshot?: Instant): Promise<Picture> {
      const storage = world.client();
      const found = new Map<string, Pictured>();
      const directories = [''];
      for (let path = directories.pop(); path !== undefined; path = directories.pop()) {
        const at = { share, path, snapshot };
        const { id, lease: _, ...properties } = { lease: undefined, ...(await getDirectory(storage, at)) };
        found.set(path, { kind: 'directory', id, properties: without(properties) });
        for (const { kind, name, found: node } of await listAll(storage, at)) {
          const below = path === '' ? name : `${path}/${name}`;
          if (kind === 'directory') directories.push(below);
          else found.set(below, await pictureFile(storage, { share, path: below, snapshot }, node!));
        }
      }
      return found;
    },
    changes: async (share: string, path: string, previous: Instant, snapshot: Instant | undefined) => {
      const found: RangeOfFile[] = [];
      const input = { ...filePlace(share, path, snapshot), previous, followsRename: true };
      await listRanges(world.client(), input, (some) => found.push(...some));
      return found;
    },
  };
  return world;
}

const filePlace = (share: string, path: string, snapshot: Instant | undefined) => ({
  ...{ share, path, snapshot, leaseId: undefined, range: undefined },
  ...{ start: undefined, resultsMax: 100_000 },
});

/** `born` is the generation of the row, which no reader sees, and a lease belongs to the current state only. */
function without(properties: object): object {
  const { born: _, lease: __, ...shown } = properties as { born?: number; lease?: unknown };
  return shown;
}

async function listAll(storage: Storage, at: { share: string; path: string; snapshot: Instant | undefined }) {
  const listed: { kind: string; name: string; found: Node | undefined }[] = [];
  const page = { begin() {}, add: (entries: typeof listed) => void listed.push(...entries) };
  for (let marker: string | undefined = ''; marker !== undefined; ) {
    const ends: string[] = [];
    const input = { ...at, prefix: undefined, marker, resultsMax: 2, isExtended: true };
    await listDirectory(storage, input, { ...page, add: page.add as never, end: (to) => void ends.push(to) });
    marker = ends[0] === '' ? undefined : ends[0];
  }
  return listed;
}

async function pictureFile(
  storage: Storage,
  { share, path, snapshot }: { share: string; path: string; snapshot: Instant | undefined },
  listed: Node,
): Promise<Pictured> {
  const place = filePlace(share, path, snapshot);
  const { file } = await getFile(storage, place);
  if (file.id !== listed.id || file.etag !== listed.etag) throw new Error(`${path} is listed as another file`);
  const { bytes } = await downloadFile(storage, { ...place, rangeMd5: undefined });
  const parts: Buffer[] = [];
  if (Buffer.isBuffer(bytes)) parts.push(bytes);
  else for await (const part of bytes) parts.push(Buffer.from(part));
  const written: number[] = [];
  await listRanges(storage, place, (some) => {
    for (const { from, to } of some) for (let at = from; at < to; at += 512) written.push(at / 512);
  });
  const { id, ...properties } = file;
  return { kind: 'file', id, properties: without(properties), bytes: Buffer.concat(parts), written };
}
