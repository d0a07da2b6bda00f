/** The source of a running copy that is an append or page blob, read slice by slice: which ranges were written, and their bytes. */
import type { ContentRead } from '../../content/content.ts';
import { parseId } from '../../content/rows.ts';
import type { Snapshot } from '../../partition/partition.ts';
import {
  type CopiedRange,
  cutRangeSlice,
  RANGE_SLICE_BYTES,
  RANGE_SLICE_RANGES_MAX,
  type RangeSlice,
} from '../../rules/copy-slices.ts';
import { StorageError } from '../common/errors.ts';
import type { RunningCopy } from '../common/running-copies.ts';
import {
  copies,
  isOtherResource,
  isRemote,
  type LocalCopySource,
  type RemoteCopySource,
  type SourceContext,
} from '../common/slice-sources.ts';
import { readBlob } from './blob-record.ts';
import { findEarlierState } from './earlier-states.ts';
import { fail } from './errors.ts';
import { type Blob, changesInPlace } from './rows.ts';

export interface SourceRanges extends RangeSlice {
  /** The bytes of the ranges that are written, one after another. To be called once. */
  bytes(): AsyncIterable<Uint8Array>;
}

/** Its functions fail with a StorageError if the source cannot be read any more. */
export interface RangeSource {
  /** The next ranges from this offset on. */
  next(offset: number): Promise<SourceRanges>;
  close(): void;
}

export function openRanges(
  context: SourceContext,
  copy: RunningCopy,
  length: number,
  signal: AbortSignal,
): RangeSource {
  const { source, inPlace } = copy;
  const since = inPlace?.incremental?.since;
  if (!isRemote(source)) return new LocalRanges(context, source, length, since);
  return new RemoteRanges(context.remote, source, length, signal, inPlace?.append ? 'plain' : 'pages', since);
}

/** A read of its own for each slice, and a look that verifies that the source is still the same. */
class LocalRanges implements RangeSource {
  private readonly context: SourceContext;
  private readonly source: LocalCopySource;
  private readonly length: number;
  private readonly since: bigint | undefined;
  private read: ContentRead | undefined;

  constructor(context: SourceContext, source: LocalCopySource, length: number, since: bigint | undefined) {
    this.context = context;
    this.source = source;
    this.length = length;
    this.since = since;
  }

  async next(offset: number): Promise<SourceRanges> {
    this.close();
    const read = this.context.content.beginRead();
    this.read = read;
    return this.context.partition.read((at) => this.plan(at, read, offset));
  }

  close(): void {
    this.read?.end();
  }

  private async plan(at: Snapshot, read: ContentRead, offset: number): Promise<SourceRanges> {
    const { account, container, grantedContainer, item: name, snapshot, etag } = this.source;
    const scope = { account, granted: { container: grantedContainer } };
    const { blob } = await readBlob(at, scope, container, name, snapshot);
    if (blob.etag !== etag || blob.length !== this.length || !changesInPlace(blob)) throw fail('ConditionNotMet');
    const { ranges } = this.context.content;
    const map = await ranges.read(at, account, parseId(blob.contentId!));
    const within = { from: offset, to: this.length };
    const since = await this.readSince(at, blob);
    const listed =
      since === undefined
        ? ranges.list(at, account, map, blob.generation, within, { bytesMax: RANGE_SLICE_BYTES })
        : ranges.compare(at, account, map, since, blob.generation, within, RANGE_SLICE_BYTES);
    const { found, isAll } = await firstRanges(listed);
    const slice = cutRangeSlice(found, isAll, this.length);
    const written = slice.ranges.filter(({ isWritten }) => isWritten);
    const [first, last] = [written[0], written.at(-1)];
    if (!first || !last) return { ...slice, bytes: noBytes };
    const { isComplete } = await read.planRanges(at, account, map, blob.generation, first.from, last.to);
    if (!isComplete && blob.generation === undefined) throw new Error('a slice of too many map pages');
    return { ...slice, bytes: () => pickRanges(copies(read.stream()), first.from, written) };
  }

  private readSince(at: Snapshot, blob: Blob): Promise<number | undefined> {
    const { account, container, grantedContainer, item: name } = this.source;
    const scope = { account, granted: { container: grantedContainer } };
    return findEarlierState(at, scope, { container, blob: name, since: this.since }, blob);
  }
}

async function firstRanges(
  listed: AsyncIterable<CopiedRange>,
): Promise<{ found: readonly CopiedRange[]; isAll: boolean }> {
  const found: CopiedRange[] = [];
  for await (const range of listed) {
    const [first = range] = found;
    if (found.length === RANGE_SLICE_RANGES_MAX || range.from >= first.from + RANGE_SLICE_BYTES)
      return { found, isAll: false };
    found.push(range);
  }
  return { found, isAll: true };
}

/** A list of its ranges, if the server has one for it, and then a request for each slice; otherwise all bytes count as written. */
class RemoteRanges implements RangeSource {
  private readonly remote: SourceContext['remote'];
  private readonly source: RemoteCopySource;
  private readonly length: number;
  private readonly signal: AbortSignal;
  private readonly since: bigint | undefined;
  private lists: 'pages' | 'plain';
  private closeRead: (() => void) | undefined;

  constructor(
    remote: SourceContext['remote'],
    source: RemoteCopySource,
    length: number,
    signal: AbortSignal,
    lists: 'pages' | 'plain',
    since: bigint | undefined,
  ) {
    this.remote = remote;
    this.source = source;
    this.length = length;
    this.signal = signal;
    this.lists = lists;
    this.since = since;
  }

  async next(offset: number): Promise<SourceRanges> {
    const { found, isAll } = await this.list(offset);
    const slice = cutRangeSlice(found, isAll, this.length);
    const written = slice.ranges.filter(({ isWritten }) => isWritten);
    return { ...slice, bytes: () => this.readBytes(written) };
  }

  close(): void {
    this.closeRead?.();
  }

  private async list(offset: number): Promise<{ found: readonly CopiedRange[]; isAll: boolean }> {
    const { remote, source, signal, since, length } = this;
    if (!remote) throw fail('AuthorizationFailure');
    if (this.lists === 'plain') return { found: [{ from: offset, to: length, isWritten: true }], isAll: true };
    const range = { from: offset, to: length - 1 };
    try {
      const listed = await remote.listPages({ url: source.url, range, since, limit: RANGE_SLICE_RANGES_MAX, signal });
      if (listed.etag !== source.etag) throw fail('ConditionNotMet');
      return { found: clip(listed.ranges, offset, length), isAll: listed.isAll };
    } catch (error) {
      // A server that has bytes for everyone may have lists for nobody; a difference needs one.
      const isRefused = error instanceof StorageError && (error.status < 500 || error.status === 501);
      if (!isRefused || error.code === 'ConditionNotMet' || since !== undefined) throw error;
      this.lists = 'plain';
      return this.list(offset);
    }
  }

  private async *readBytes(written: readonly CopiedRange[]): AsyncGenerator<Uint8Array> {
    const [first, last] = [written[0], written.at(-1)];
    if (!first || !last) return;
    const { url } = this.source;
    const read = await this.remote!.open({ url, range: { from: first.from, to: last.to - 1 }, signal: this.signal });
    this.closeRead = read.close;
    try {
      if (isOtherResource(this.source, this.length, read.head)) throw fail('ConditionNotMet');
      yield* pickRanges(read.bytes(), first.from, written);
    } finally {
      read.close();
    }
  }
}

/** What another server lists is not trusted: ranges in order, within the blob, of whole pages. */
function clip(ranges: readonly CopiedRange[], offset: number, length: number): CopiedRange[] {
  const clipped: CopiedRange[] = [];
  let end = offset;
  for (const { from, to, isWritten } of ranges) {
    const [begin, stop] = [Math.max(from, end), Math.min(to, length)];
    if (begin >= stop) continue;
    clipped.push({ from: begin, to: stop, isWritten });
    end = stop;
  }
  return clipped;
}

/** The bytes of these ranges, out of a stream that begins at `offset`. */
async function* pickRanges(
  bytes: AsyncIterable<Uint8Array>,
  offset: number,
  ranges: readonly CopiedRange[],
): AsyncGenerator<Uint8Array> {
  let [begin, next] = [offset, 0];
  for await (const piece of bytes) {
    const end = begin + piece.length;
    for (; next < ranges.length; next++) {
      const { from, to } = ranges[next]!;
      if (from >= end) break;
      yield piece.subarray(Math.max(from - begin, 0), Math.min(to, end) - begin);
      if (to > end) break;
    }
    begin = end;
  }
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}
