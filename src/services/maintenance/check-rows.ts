/** The check of a single row: it can be decoded, everything that it references exists, and its reference count is right. */
import {
  type Content,
  decodeChunk,
  decodeContent,
  decodeManifestPage,
  formatId,
  type Segment,
} from '../../content/rows.ts';
import { decodeKey, encodeKey, type Part as KeyPart } from '../../partition/keys.ts';
import type { Row, Snapshot } from '../../partition/partition.ts';
import { decodeBytes, decodeCounter, decodeText, decodeValue } from '../../partition/values.ts';
import { accountKeysFault, accountNameFault } from '../../rules/account-names.ts';
import { isPending } from '../../rules/copy-state.ts';
import { findTag } from '../../rules/tags.ts';
import { decodeBlobRecord } from '../blob/blob-record.ts';
import { blobKey, decodeBlock, decodeProperties, decodeUncommitted, expiryKey, nameKey } from '../blob/rows.ts';
import { type CopyPlace, keyOfCopy, placeOfCopy, readCopied } from '../blob/running-copies.ts';
import { tagKey } from '../blob/tag-index.ts';
import { decodeAccount } from '../common/account-rows.ts';
import { decodeDeletedName, deletedExpiryKey, type RestorableService } from '../common/deleted-names.ts';
import { decodeDeletion } from '../common/deletions.ts';
import { decodeName, type ServiceName } from '../common/names.ts';
import { decodeRunningCopy } from '../common/running-copies.ts';
import { decodeNode } from '../file/node-rows.ts';
import { decodeMessage } from '../queue/message-rows.ts';
import { decodeEntityProperties, entityFromRow } from '../table/entity-rows.ts';
import { checkShareRow, treeFaults, usageMismatches } from './check-files.ts';
import { checkBlobContent, checkDeletedState, checkRetention, checkSnapshot, hasState } from './check-old-states.ts';
import {
  checkAppended,
  checkHeld,
  checkMapPage,
  checkOlderPage,
  checkPiece,
  checkRangesContent,
} from './check-ranges.ts';
import { type ContentCount, qualifiedId, type ReferenceCounts } from './check-refcounts.ts';

export interface CheckTotals {
  rows: number;
  containers: number;
  blobs: number;
  /** The sum of the blobs' lengths. */
  bytes: number;
  queues: number;
  messages: number;
  tables: number;
  entities: number;
  shares: number;
  files: number;
  readonly findings: string[];
  /** Accounts that have rows and do not exist. */
  readonly unknownAccounts: Set<bigint>;
}

/** What a name row of each service counts as. */
const nameTotals = { blob: 'containers', queue: 'queues', table: 'tables', file: 'shares' } as const satisfies Record<
  ServiceName,
  keyof CheckTotals
>;

/** Throws the fault, in plain words. */
export async function checkRow(at: Snapshot, row: Row, counts: ReferenceCounts, totals: CheckTotals): Promise<void> {
  const [account, type, ...rest] = decodeKey(row.key) as [bigint | string, string, ...KeyPart[]];
  if (typeof account !== 'bigint') return checkStoreRow(account, row);
  if (!counts.accounts.has(account)) totals.unknownAccounts.add(account);
  const name = (id: unknown) => qualifiedId(account, id);
  const hasContainer = (id: unknown) =>
    counts.containers.has(name(`blob ${id}`)) || counts.deletionQueue.has(`container ${name(id)}`);
  const isInDeletionQueue = (...parts: KeyPart[]) =>
    counts.deletionQueue.has(`rows ${encodeKey([account, type, ...parts])}`);
  const hasQueue = (id: KeyPart = '', gen: KeyPart = '') =>
    counts.queues.get(name(`${id}-${gen}`))?.name !== undefined || isInDeletionQueue(id) || isInDeletionQueue(id, gen);
  const ownId = `${rest[0]}-${rest[1]}`;
  /** Its chunks may be gone, because another content has taken over their references. */
  const isUncounted = (kind: string) => counts.uncounted.has(`${kind} ${name(ownId)}`);
  switch (type) {
    case 'n':
      totals[nameTotals[rest[0] as ServiceName]]++;
      if (!(await at.get(encodeKey([account, 'p', rest[0]!, decodeName(row)]))))
        throw new Error('it has no properties');
      return;
    case 'p':
      if (rest[0] === 'blob') decodeProperties(row);
      else decodeValue(row);
      if (!counts.containers.has(name(`${rest[0]} ${rest[1]}`))) throw new Error('no name leads to it');
      return;
    case 'b': {
      const record = decodeBlobRecord(row);
      totals.blobs++;
      totals.bytes += record.length;
      if (!hasContainer(rest[0])) throw new Error('its container does not exist');
      await checkCopyRuns(at, row, counts);
      await checkTags(at, row);
      await checkBlobContent(at, row, record, counts);
      return checkAppended(record, account, counts);
    }
    case 'r':
      if (!hasContainer(rest[0])) throw new Error('its container does not exist');
      return checkRunningCopy(at, row, counts);
    case 't': {
      const [id, key, value, blob] = rest as [bigint, string, string, string];
      decodeValue(row);
      const found = await at.get(blobKey(account, id, blob));
      if (!found || findTag(decodeBlobRecord(found).tags, key) !== value) throw new Error('a tag that no blob has');
      return;
    }
    case 'T': {
      const [, id] = rest as [string, bigint];
      decodeCounter(row);
      if (!hasContainer(id)) throw new Error('its container does not exist');
      return;
    }
    case 'U': {
      const named = await at.get(nameKey(account, decodeText(row)));
      if (!named || decodeName(named) !== rest[0]) throw new Error('its container has another name');
      return;
    }
    case 'v':
    case 'V':
    case 'D':
      if (!hasContainer(rest[0])) throw new Error('its container does not exist');
      return type === 'v' ? checkSnapshot(at, row, counts) : checkDeletedState(at, row, counts);
    case 'i': {
      const [id, , blob, stamp] = rest as [bigint, bigint, string, bigint?];
      decodeBytes(row);
      if (!(await hasState(at, account, id, blob, stamp))) throw new Error('content that no blob has');
      return;
    }
    case 'c': {
      const content = decodeContent(row);
      checkContent(content, counts.contents.get(name(ownId))!);
      return content.kind === 'ranges' ? checkRangesContent(content, name(ownId), counts) : undefined;
    }
    case 'M':
      return checkMapPage(at, row, account, counts);
    case 'I':
      return checkPiece(at, row, account, counts);
    case 'N':
      return checkHeld(row, counts);
    case 'o':
      return checkOlderPage(row, account, counts);
    case 'm':
      if (
        !counts.contents.get(name(ownId))?.row &&
        !counts.deletionQueue.has(`content ${name(ownId)}`) &&
        !counts.building.has(name(ownId))
      )
        throw new Error('bytes of a content that does not exist');
      if (isUncounted('content')) return;
      return checkSegments(decodeManifestPage(row), account, counts);
    case 'k': {
      const { refs } = decodeChunk(row);
      const { users } = counts.chunks.get(name(ownId))!;
      if (users === 0) throw new Error('bytes that nothing names');
      if (refs !== users) throw new Error(`it counts ${refs} users and has ${users}`);
      return;
    }
    case 'l': {
      const stored = Number(decodeCounter(row));
      const { bytes } = counts.live.get(name(rest[0]))!;
      if (stored !== bytes) throw new Error(`it counts ${stored} bytes in use and there are ${bytes}`);
      return;
    }
    case 'u': {
      const { id, due, count } = decodeUncommitted(row);
      if (!hasContainer(rest[0])) throw new Error('its container does not exist');
      if (!(await at.get(expiryKey(account, due, rest[0] as bigint, rest[2] as string))))
        throw new Error('its uncommitted blocks would never expire');
      const { blocks } = counts.uncommitted.get(name(formatId(id)))!;
      if (blocks !== count) throw new Error(`it counts ${count} uncommitted blocks and has ${blocks}`);
      return;
    }
    case 'y':
      if (!counts.uncommitted.get(name(ownId))?.hasBlob && !counts.deletionQueue.has(`stage ${name(ownId)}`))
        throw new Error('a block that no blob has');
      if (isUncounted('stage')) return;
      return checkSegments([decodeBlock(row)], account, counts);
    case 'q':
      totals.messages++;
      decodeMessage(row);
      if (!hasQueue(rest[0], rest[1])) throw new Error('its queue does not exist');
      return;
    case '#':
      decodeCounter(row);
      if (!hasQueue(rest[0], rest[1])) throw new Error('its queue does not exist');
      return;
    case 'e':
      totals.entities++;
      decodeEntityProperties(entityFromRow(row));
      if (!counts.containers.has(name(`table ${rest[0]}`)) && !isInDeletionQueue(rest[0]!))
        throw new Error('its table does not exist');
      return;
    case 'd':
    case 'j':
    case 'z':
    case 'h':
    case 'S':
    case 'P':
    case 'R':
    case '$':
      if (counts.deletionQueue.has(`share ${name(rest[0])}`)) return;
      if (!counts.containers.has(name(`file ${rest[0]}`))) throw new Error('its share does not exist');
      if (type === 'j' && decodeNode(0n, row).kind === 'file') totals.files++;
      return checkShareRow(at, row, counts);
    case 'x':
      decodeDeletion(row);
      return;
    case 'g': {
      const service = rest[0] as RestorableService;
      const gone = decodeDeletedName(row);
      const properties = encodeKey([account, 'p', service, gone.id]);
      const needed = [properties, deletedExpiryKey(account, service, gone)];
      if ((await at.getMany(needed)).includes(undefined))
        throw new Error('its properties or the end of its retention is missing');
      return;
    }
    case 's':
      decodeValue(row);
      return;
    case 'w':
      decodeValue(row);
      return rest[1] === 'retention' ? checkRetention(at, row) : undefined;
    default:
      throw new Error('a row of a kind that this version does not know');
  }
}

/** Rows of the store itself. */
function checkStoreRow(type: string, row: Row): void {
  decodeValue(row);
  if (type !== 'account') return;
  const { name, keys } = decodeAccount(row);
  const fault = accountNameFault(name) ?? (keys.length > 0 ? accountKeysFault(keys) : undefined);
  if (fault) throw new Error(fault);
}

/** Counters, or sums of counters, that are wrong and have no row of their own to be reported at. */
export function counterMismatches(counts: ReferenceCounts): string[] {
  return [
    ...missingLiveCounters(counts),
    ...queueCountMismatches(counts),
    ...tagCountMismatches(counts),
    ...treeFaults(counts),
    ...usageMismatches(counts),
  ];
}

function queueCountMismatches({ queues, accounts }: ReferenceCounts): string[] {
  return [...queues]
    .filter(([, { name, messages, counted }]) => name !== undefined && messages !== counted)
    .map(([id, { name, messages, counted }]) => {
      const account = accounts.get(BigInt(id.split('/')[0]!));
      return `queue ${account}/${name}: it counts ${counted} messages and has ${messages}`;
    });
}

function tagCountMismatches({ tagged }: ReferenceCounts): string[] {
  return [...tagged]
    .filter(([, { counted, blobs }]) => counted !== blobs)
    .map(([id, { counted, blobs }]) => `tag ${id}: it counts ${counted} blobs and there are ${blobs}`);
}

/** Counters that have no row, although they should. */
function missingLiveCounters({ live }: ReferenceCounts): string[] {
  return [...live]
    .filter(([, { row, bytes }]) => row === 0 && bytes > 0)
    .map(([name, { bytes }]) => `extent ${name.split('/')[1]}: it counts 0 bytes in use and there are ${bytes}`);
}

async function checkTags(at: Snapshot, row: Row): Promise<void> {
  const [account, , id, , blob] = decodeKey(row.key) as [bigint, string, bigint, bigint, string];
  const { tags } = decodeBlobRecord(row);
  const rows = await at.getMany(tags.map(([key, value]) => tagKey(account, id, key, value, blob)));
  const missing = tags.find((_, i) => !rows[i]);
  if (missing) throw new Error(`its tag ${missing[0]} is not in the index`);
}

/** Of a container that is being deleted, copies and blobs go one after the other. */
const isDeletedWith = ({ account, container }: CopyPlace, { deletionQueue }: ReferenceCounts): boolean =>
  deletionQueue.has(`container ${qualifiedId(account, container)}`);

async function checkCopyRuns(at: Snapshot, row: Row, counts: ReferenceCounts): Promise<void> {
  const place = placeOfCopy(row.key);
  if (!isPending(decodeBlobRecord(row).copy) || isDeletedWith(place, counts)) return;
  if (!(await at.get(keyOfCopy(place)))) throw new Error('a copy onto it is pending and does not run');
}

/** Its pages are the bytes that its blob counts as copied. */
async function checkRunningCopy(at: Snapshot, row: Row, counts: ReferenceCounts): Promise<void> {
  const copy = decodeRunningCopy(row);
  const place = placeOfCopy(row.key);
  if (isDeletedWith(place, counts)) return;
  const blob = await readCopied(at, place);
  const state = blob?.copy;
  if (state?.id !== copy.id || !isPending(state)) throw new Error('a copy that its blob does not know');
  if (copy.inPlace) {
    if (blob?.contentId !== formatId(copy.content)) throw new Error('a copy that writes into another blob');
    return;
  }
  const { row: content, end = 0, gap } = counts.contents.get(qualifiedId(place.account, formatId(copy.content))) ?? {};
  if (content) throw new Error('a running copy whose content is complete');
  if (gap !== undefined || end !== state.copied) throw new Error(`it has ${end} bytes, not ${state.copied}`);
}

function checkContent(content: Content, { blobs, end, gap }: ContentCount): void {
  const { refs } = content;
  if (blobs === 0) throw new Error('content that no blob has');
  if (refs !== blobs) throw new Error(`it counts ${refs} users and has ${blobs}`);
  if (content.kind === 'ranges') return;
  const { length } = content;
  if (gap !== undefined) throw new Error(`its byte ${gap} is missing, or is there twice`);
  if (end !== length) throw new Error(`it has ${end} bytes, not ${length}`);
}

function checkSegments(segments: readonly Segment[], account: bigint, { chunks }: ReferenceCounts): void {
  for (const { chunkRefs } of segments) {
    for (const { chunk, length, offset } of chunkRefs) {
      const { row } = chunks.get(qualifiedId(account, formatId(chunk))) ?? {};
      if (!row) throw new Error(`bytes that it names are missing: chunk ${formatId(chunk)}`);
      if (offset === undefined ? row.length !== length : row.length < offset + length)
        throw new Error(
          `bytes that it names have another length: chunk ${formatId(chunk)} has ${row.length}, not ${(offset ?? 0) + length}`,
        );
    }
  }
}
