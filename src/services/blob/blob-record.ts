/**
 * The blob record's serialization: fields as lines of text, since a page of a list decodes thousands of records.
 */
import type { Row, Snapshot, Timestamp } from '../../partition/partition.ts';
import { decodeText, encodeText } from '../../partition/values.ts';
import { NO_TAGS, type Tags } from '../../rules/tags.ts';
import { parseRehydratePriority, parseTier, type StoredTier } from '../../rules/tiers.ts';
import { decodeLease, encodeLease, type StoredLease, versionFields } from '../common/etagged-rows.ts';
import { formatLine, joinLines, parseLine, splitLines } from '../common/record-lines.ts';
import type { AccountId, AccountScope } from '../common/storage.ts';
import { fail } from './errors.ts';
import { decodeMark, hiddenUpTo, markKey, snapshotKey } from './old-rows.ts';
import {
  type AppendState,
  type Blob,
  type BlobRecord,
  blobKey,
  blobTypeOf,
  type ContainerId,
  type CopyState,
  type Metadata,
  type PageState,
  readContainerId,
} from './rows.ts';

/** After the five fields of a tier. */
const TAGS_FIELD = 20;
/** What blobs of this type have besides. */
const TYPE_FIELD = 21;
const GENERATION_FIELD = 22;

export function encodeBlobRecord(record: BlobRecord): Buffer {
  return encodeText(formatBlobRecord(record, record.etag));
}

/** The record of a blob whose ETag is the version of the row that is written. */
export function encodeNewRecord(record: Omit<BlobRecord, 'etag'>): Buffer {
  return encodeText(formatBlobRecord(record, undefined));
}

/** @param etag undefined: the version of the row */
export function formatBlobRecord(record: Omit<BlobRecord, 'etag'>, etag: Timestamp | undefined): string {
  const { content, metadata, lease, copy, tier, tags, append, page } = record;
  const fields = [
    blobTypeOf(record),
    String(record.length),
    record.created.toString(),
    formatLine(record.crc64),
    formatLine(content.contentType),
    formatLine(content.contentMd5),
    formatLine(record.contentId),
    formatLine(content.contentEncoding),
    formatLine(content.contentLanguage),
    formatLine(content.contentDisposition),
    formatLine(content.cacheControl),
    etag?.toString() ?? '',
    Object.keys(metadata).length === 0 ? '' : JSON.stringify(metadata),
    lease ? JSON.stringify(encodeLease(lease)) : '',
    copy ? JSON.stringify({ ...copy, completed: copy.completed?.toString() }) : '',
  ];
  if (tier) fields.push(...encodeTier(tier));
  if (tags && tags.length > 0) fields[TAGS_FIELD] = JSON.stringify(tags);
  if (append) fields[TYPE_FIELD] = JSON.stringify(append);
  if (page) fields[TYPE_FIELD] = formatPageState(page);
  if (record.generation !== undefined) fields[GENERATION_FIELD] = String(record.generation);
  return joinLines(fields);
}

export function decodeBlobRecord(row: Row): Blob {
  return parseBlobRecord(decodeText(row), row);
}

/** @param row whose version is the ETag, unless the record has one */
export function parseBlobRecord(text: string, row: Row): Blob {
  const fields = splitLines(text);
  if (fields.length < 3) throw new Error('a blob record without its end');
  const { etag, modified, version } = versionFields(row, fields[11] || undefined);
  return {
    length: Number(fields[1]),
    created: BigInt(fields[2]!),
    crc64: parseLine(fields[3]),
    content: {
      contentType: parseLine(fields[4]),
      contentMd5: parseLine(fields[5]),
      contentEncoding: parseLine(fields[7]),
      contentLanguage: parseLine(fields[8]),
      contentDisposition: parseLine(fields[9]),
      cacheControl: parseLine(fields[10]),
    },
    contentId: parseLine(fields[6]),
    metadata: fields[12] ? (JSON.parse(fields[12]) as Metadata) : NO_METADATA,
    lease: fields[13] ? decodeLease(JSON.parse(fields[13]) as StoredLease) : undefined,
    copy: fields[14] ? decodeCopyState(JSON.parse(fields[14])) : undefined,
    tier: fields[15] ? decodeTier(fields.slice(15, TAGS_FIELD)) : undefined,
    tags: fields[TAGS_FIELD] ? (JSON.parse(fields[TAGS_FIELD]) as Tags) : NO_TAGS,
    append: fields[0] === 'append' ? (JSON.parse(fields[TYPE_FIELD]!) as AppendState) : undefined,
    page: fields[0] === 'page' ? parsePageState(fields[TYPE_FIELD]!) : undefined,
    generation: fields[GENERATION_FIELD] ? Number(fields[GENERATION_FIELD]) : undefined,
    etag,
    modified,
    version,
  };
}

/** Most page blobs have nothing but a sequence number. */
function formatPageState({ sequenceNumber, tier, incremental }: PageState): string {
  if (tier === undefined && !incremental) return sequenceNumber.toString();
  const { copied, taken, ...rest } = incremental ?? {};
  const stored = incremental && { ...rest, copied: copied?.toString(), taken: taken?.toString() };
  return JSON.stringify({ sequenceNumber: sequenceNumber.toString(), tier, incremental: stored });
}

function parsePageState(text: string): PageState {
  if (!text.startsWith('{')) return { sequenceNumber: BigInt(text) };
  const { sequenceNumber, tier, incremental } = JSON.parse(text) as StoredPageState;
  const { copied, taken, ...rest } = incremental ?? {};
  const stamps = {
    copied: copied === undefined ? undefined : BigInt(copied),
    taken: taken === undefined ? undefined : BigInt(taken),
  };
  return {
    sequenceNumber: BigInt(sequenceNumber),
    tier,
    incremental: incremental && { ...rest, source: incremental.source, ...stamps },
  };
}

/** JSON has no bigint. */
type StoredPageState = Pick<PageState, 'tier'> & {
  readonly sequenceNumber: string;
  readonly incremental?: {
    readonly source: string;
    readonly isPartial?: true;
    readonly copied?: string;
    readonly taken?: string;
  };
};

export async function findBlob(
  at: Snapshot,
  account: AccountId,
  id: ContainerId,
  blob: string,
): Promise<Blob | undefined> {
  const row = await at.get(blobKey(account, id, blob));
  return row && decodeBlobRecord(row);
}

/** @param snapshot undefined: the base blob */
export async function readBlob(
  at: Snapshot,
  scope: AccountScope,
  container: string,
  blob: string,
  snapshot?: Timestamp,
): Promise<{ id: ContainerId; blob: Blob }> {
  const id = await readContainerId(at, scope, container);
  const found =
    snapshot === undefined
      ? await findBlob(at, scope.account, id, blob)
      : await findSnapshot(at, scope.account, id, blob, snapshot);
  if (!found) throw fail('BlobNotFound');
  return { id, blob: found };
}

async function findSnapshot(
  at: Snapshot,
  account: AccountId,
  id: ContainerId,
  blob: string,
  snapshot: Timestamp,
): Promise<Blob | undefined> {
  const [mark, row] = await at.getMany([markKey(account, id, blob), snapshotKey(account, id, blob, snapshot)]);
  if (!row || (mark && snapshot <= hiddenUpTo(decodeMark(mark)))) return undefined;
  return { ...decodeBlobRecord(row), snapshot };
}

function encodeTier({ tier, changed, rehydration }: StoredTier): string[] {
  const fields: string[] = [tier, changed.toString()];
  if (rehydration) fields.push(rehydration.to, rehydration.due.toString(), rehydration.priority);
  return fields;
}

function decodeTier([name = '', changed = '', to = '', due = '', sent = '']: string[]): StoredTier {
  const tier = parseTier(name);
  if (tier === undefined) throw new Error('a tier that does not exist');
  if (to === '') return { tier, changed: BigInt(changed) };
  const [target, priority] = [parseTier(to), parseRehydratePriority(sent)];
  if (target === undefined || target === 'Archive' || !priority) throw new Error('a rehydration that does not exist');
  return { tier, changed: BigInt(changed), rehydration: { to: target, due: BigInt(due), priority } };
}

const NO_METADATA: Metadata = {};

function decodeCopyState({ completed, ...copy }: Omit<CopyState, 'completed'> & { completed?: string }): CopyState {
  return completed === undefined ? copy : { ...copy, completed: BigInt(completed) };
}
