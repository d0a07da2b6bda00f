/**
 * Changes of append and page blobs. Short writes that wait for one blob run as one transaction, which writes the record and each page of the map
 * once. Each is judged in its turn, by the state that those before it have made, and has an ETag of its own: the last one's is the row's version.
 */
import type { RangeMap, ShortWrite } from '../../content/ranges/range-maps.ts';
import { parseId } from '../../content/rows.ts';
import type { CombinedFunction, CombinedResult, Row, Timestamp, Transaction } from '../../partition/partition.ts';
import { formatEtag } from '../../rules/conditions.ts';
import { leaseAfterWrite } from '../../rules/lease.ts';
import { type StagedBytes, writeStaged } from '../common/staged-bytes.ts';
import type { Storage } from '../common/storage.ts';
import { decodeBlobRecord, encodeNewRecord } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  type BlobInput,
  checkChangeable,
  checkLease,
  checkWriteConditions,
  type DecisionSnapshot,
} from './request-checks.ts';
import {
  type Blob,
  type BlobRecord,
  type BlobType,
  blobKey,
  type ContainerId,
  checkGranted,
  readContainerId,
  txQueueKey,
} from './rows.ts';
import { checkSameContainer, checkType } from './write-target.ts';

/** Bytes of the short writes of one transaction: a quarter of what a map page takes before it must be merged. */
const SHARED_BYTES_MAX = 64 << 10;
/** A write counts as so many bytes at least: in pages of their own, each may change dozens of rows. */
const WRITE_BYTES_MIN = { append: 512, page: 4 << 10, block: SHARED_BYTES_MAX };

/** Undefined: the field stays as it is. */
type ChangedFields = {
  readonly [Field in 'length' | 'append' | 'page' | 'content']?: BlobRecord[Field] | undefined;
};

/** What a write does to the map and to the record. */
export interface InPlaceChange<T> {
  /** Undefined: the blob stays as it is. */
  readonly record?: ChangedFields;
  /** Where the bytes of the call are to be written. */
  readonly offset?: number;
  /** True: the sweeper has work to do. */
  write?(tx: Transaction, map: RangeMap): Promise<{ readonly needsSweep: boolean }>;
  readonly result: T;
}

export interface ChangeInput {
  readonly input: Pick<BlobInput, 'container' | 'blob' | 'conditions'>;
  /** In its canonical form. */
  readonly leaseId: string | undefined;
  readonly type: BlobType;
  /** The container as it was found before the bytes came. */
  readonly containerId?: ContainerId | undefined;
  readonly bytes?: StagedBytes | undefined;
}

interface ChangeCall extends ChangeInput {
  readonly storage: Storage;
  readonly decide: (blob: Blob) => InPlaceChange<object>;
}

/** What a call of `changeInPlace` returns. */
export interface Changed<T extends object = object> {
  readonly result: T;
  readonly etag: string;
  readonly modified: Timestamp;
  /** One of the calls wakes the sweeper. */
  needsSweep: boolean;
}

/** A blob of which no one else has a reference. */
type OwnBlob = { -readonly [Field in keyof Blob]: Blob[Field] };

/**
 * One change of a blob of this type.
 * @param decide may throw, and may be called again
 */
export async function changeInPlace<T extends object>(
  storage: Storage,
  change: ChangeInput,
  decide: (blob: Blob) => InPlaceChange<T>,
): Promise<Omit<Changed<T>, 'needsSweep'>> {
  const { account, content, partition, sweeper } = storage;
  const { input, leaseId, type, containerId, bytes } = change;
  const queueKey = txQueueKey(account, input.container, input.blob);
  const call: ChangeCall = { storage, input, leaseId, type, containerId, bytes, decide };
  const changed = await content.ranges.withRoom(account, () =>
    partition.transactCombined(queueKey, call, changeTogether),
  );
  if (changed.needsSweep) sweeper.wake();
  return changed as Changed<T>;
}

const changeTogether: CombinedFunction<ChangeCall, Changed> = {
  weightMax: SHARED_BYTES_MAX,
  weight: ({ bytes, type }) =>
    bytes?.inline ? Math.max(bytes.inline.length, WRITE_BYTES_MIN[type]) : SHARED_BYTES_MAX,
  async run(tx, calls) {
    const { storage, input } = calls[0]!;
    const { account } = storage;
    const containerId = await readContainerId(tx, { account }, input.container);
    const key = blobKey(account, containerId, input.blob);
    const state = new BlobState(tx, containerId, await tx.get(key));
    const results = calls.map((call) => state.change(call));
    if (state.isChanged) {
      const { needsSweep } = await writeChanges(tx, storage, state);
      tx.put(key, encodeNewRecord(state.blob!));
      if (needsSweep) setNeedsSweep(results);
    }
    return results;
  },
};

function setNeedsSweep(results: readonly CombinedResult<Changed>[]): void {
  for (const result of results) {
    if (!('value' in result)) continue;
    result.value.needsSweep = true;
    return;
  }
}

async function writeChanges(
  tx: Transaction,
  storage: Storage,
  { blob, short, long }: BlobState,
): Promise<{ readonly needsSweep: boolean }> {
  if (!long && short.length === 0) return { needsSweep: false };
  const { account, content } = storage;
  const map = await content.ranges.read(tx, account, parseId(blob!.contentId!));
  if (long) return await long(tx, map);
  const { append, writeShort } = content.ranges;
  return await (blob!.append ? append : writeShort)(tx, account, map, short);
}

/** The blob as the calls change it one after another; nothing is written. */
class BlobState {
  blob: OwnBlob | undefined;
  isChanged = false;
  readonly short: ShortWrite[] = [];
  /** Of a call that has the transaction for itself. */
  long: InPlaceChange<object>['write'];
  private readonly tx: Transaction;
  private readonly containerId: ContainerId;
  private readonly version: Timestamp;

  constructor(tx: Transaction, containerId: ContainerId, row: Row | undefined) {
    this.tx = tx;
    this.containerId = containerId;
    this.blob = row && decodeBlobRecord(row);
    this.version = row?.version ?? 0n;
  }

  change(call: ChangeCall): CombinedResult<Changed> {
    try {
      return { value: this.apply(call) };
    } catch (error) {
      return { error };
    }
  }

  private apply({ storage, input, leaseId, type, containerId, bytes, decide }: ChangeCall): Changed {
    checkGranted(storage.granted, this.containerId);
    const blob = findInPlace(this.tx, this.blob, input.conditions, leaseId, type);
    checkSameContainer(this.containerId, containerId);
    const { record, offset, write, result } = decide(blob);
    if (!record) return { result, etag: blob.etag, modified: blob.modified, needsSweep: false };
    if (offset === undefined) this.long = write;
    else if (bytes?.inline) this.short.push({ offset, bytes: bytes.inline });
    else if (bytes) this.long = (tx, map) => writeStaged(tx, storage, map, offset, bytes);
    const version = this.nextVersion();
    const etag = formatEtag(version);
    // Field by field: spreading such objects costs more than the rest of this function.
    blob.length = record.length ?? blob.length;
    blob.append = record.append ?? blob.append;
    blob.page = record.page ?? blob.page;
    blob.content = record.content ?? blob.content;
    blob.lease = leaseAfterWrite(blob.lease, this.tx.now);
    // The state of a copy ends with the first change.
    blob.copy = undefined;
    blob.etag = etag;
    blob.modified = version;
    blob.version = version;
    return { result, etag, modified: version, needsSweep: false };
  }

  private nextVersion(): Timestamp {
    const { tx } = this;
    // A timestamp that is not above the row's version makes the commit a conflict; a later one might not, and this one may be an ETag already.
    const isFirst = !this.isChanged;
    this.isChanged = true;
    return isFirst || tx.timestamp <= this.version ? tx.timestamp : tx.nextTimestamp();
  }
}

/** The blob of this type, if lease and conditions permit a write. */
export function findInPlace<Found extends Blob>(
  at: DecisionSnapshot,
  blob: Found | undefined,
  conditions: BlobInput['conditions'],
  leaseId: string | undefined,
  type: BlobType,
): Found {
  if (!blob) throw fail('BlobNotFound');
  checkLease(at, blob.lease, leaseId, 'write', 'blob');
  checkWriteConditions(blob, conditions, leaseId);
  checkType(blob, type);
  checkChangeable(blob);
  return blob;
}
