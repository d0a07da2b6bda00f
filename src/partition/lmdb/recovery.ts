/** Crash recovery: the segments of the log after the last checkpoint become generations of the overlay again. Nothing is applied here. */
import { statSync } from 'node:fs';
import { later } from '../clock.ts';
import type { Instant } from '../partition.ts';
import { CorruptionError, hasValidHeader, isNew } from './corruption.ts';
import { dataFile, type LmdbFiles, META_PAGES, openFiles, PAGE_BYTES, readMeta } from './files.ts';
import { migrateLog } from './migrate-format-3.ts';
import type { Generation } from './overlay.ts';
import { loadGeneration, readSegmentsAfter, rewriteAndSync } from './segments.ts';
import { segmentFile, slotOf, Wal } from './wal.ts';
import type { SegmentEnd } from './wal-record.ts';

export interface Recovered {
  readonly files: LmdbFiles;
  readonly wal: Wal;
  readonly active: Generation | undefined;
  /** A segment that ended before the crash and was not checkpointed. */
  readonly frozen: { readonly generation: Generation; readonly end: SegmentEnd } | undefined;
  /** The clock continues after this instant. */
  readonly highWater: Instant;
}

/** Throws CorruptionError. */
export async function recover(location: string): Promise<Recovered> {
  const exists = !isNew(location);
  await migrateLog(location);
  if (exists && !hasValidHeader(location)) throw new CorruptionError('the file of LMDB is damaged');
  // The cache may show the meta pages of a checkpoint whose sync failed. This sync makes the file's length durable, too.
  if (exists) rewriteAndSync(dataFile(location), META_PAGES * PAGE_BYTES);
  const dataBytes = exists ? statSync(dataFile(location)).size : 0;
  const files = openFiles(location);
  try {
    const applied = Number(readMeta(files.meta, 'applied'));
    const segments = readSegmentsAfter(applied, location);
    const last = segments.at(-1)?.end;
    if (last) rewriteAndSync(segmentFile(location, slotOf(last.number)), last.position);
    const loaded = segments.map(loadGeneration);
    return {
      files,
      wal: new Wal(location, last ?? { next: applied + 1 }, dataBytes),
      active: loaded.at(-1)?.generation,
      frozen: segments.length > 1 ? { generation: loaded[0]!.generation, end: segments[0]!.end } : undefined,
      highWater: loaded.map(({ until }) => until).reduce(later, readMeta(files.meta, 'high-water')),
    };
  } catch (error) {
    await files.environment.close();
    throw error;
  }
}
