/** What `check` says of a single row: can it be read, does everything that it refers to exist, does it say how many refer to it? */

import {
  type Content,
  decodeCell,
  decodeChunk,
  decodeContent,
  decodeTrash,
  idOf,
  type Piece,
  textOf,
} from '../../content/rows.ts';
import { crc64Base64 } from '../../hashing/hasher.ts';
import { decodeKey, encodeKey, type Part as KeyPart } from '../../partition/keys.ts';
import { counterOf, type Row, type Snapshot } from '../../partition/partition.ts';
import { decodeBytes, decodeValue } from '../../partition/values.ts';
import { accountKeysFault, accountNameFault } from '../../rules/account-names.ts';
import { decodeHead } from '../blob/blob-record.ts';
import { decodeBlock, decodeProperties, decodeStage, dueKey, inlineKey } from '../blob/rows.ts';
import { decodeAccount } from '../common/account-rows.ts';
import { decodeName } from '../common/names.ts';
import { decodeMessage } from '../queue/message-rows.ts';
import { propertiesOf, storedEntity } from '../table/entity-rows.ts';
import { type ContentCount, type Counts, nameOf } from './check-refcounts.ts';

export interface Tally {
  rows: number;
  containers: number;
  blobs: number;
  /** Of the blobs, as their users see them. */
  bytes: number;
  readonly findings: string[];
  /** Accounts that have rows and do not exist. */
  readonly strays: Set<bigint>;
}

/** Throws what is wrong, in plain words. */
export async function checkRow(at: Snapshot, row: Row, counts: Counts, tally: Tally): Promise<void> {
  const [account, type, ...rest] = decodeKey(row.key) as [bigint | string, string, ...KeyPart[]];
  if (typeof account !== 'bigint') return checkStoreRow(account, row);
  if (!counts.accounts.has(account)) tally.strays.add(account);
  const name = (id: unknown) => nameOf(account, id);
  const hasContainer = (id: unknown) =>
    counts.containers.has(name(`blob ${id}`)) || counts.trashed.has(`container ${name(id)}`);
  const isTrashed = (...parts: KeyPart[]) => counts.trashed.has(`rows ${encodeKey([account, type, ...parts])}`);
  const hasQueue = (id: KeyPart = '', gen: KeyPart = '') =>
    counts.queues.get(name(`${id}-${gen}`))?.name !== undefined || isTrashed(id) || isTrashed(id, gen);
  const own = `${rest[0]}-${rest[1]}`;
  /** Its chunks may be gone with who has their references. */
  const isUncounted = (kind: string) => counts.uncounted.has(`${kind} ${name(own)}`);
  switch (type) {
    case 'n':
      if (rest[0] === 'blob') tally.containers++;
      if (!(await at.get(encodeKey([account, 'p', rest[0]!, decodeName(row)]))))
        throw new Error('it has no properties');
      return;
    case 'p':
      if (rest[0] === 'blob') decodeProperties(row);
      else decodeValue(row);
      if (!counts.containers.has(name(`${rest[0]} ${rest[1]}`))) throw new Error('no name leads to it');
      return;
    case 'b':
      tally.blobs++;
      tally.bytes += decodeHead(row).length;
      if (!hasContainer(rest[0])) throw new Error('its container does not exist');
      return checkContentOf(at, row, counts);
    case 'i':
      decodeBytes(row);
      if (!(await at.get(encodeKey([account, 'b', ...rest])))) throw new Error('content that no blob has');
      return;
    case 'c':
      return checkContent(decodeContent(row), counts.contents.get(name(own))!);
    case 'm':
      if (!counts.contents.get(name(own))?.row && !counts.trashed.has(`content ${name(own)}`))
        throw new Error('bytes of a content that does not exist');
      if (isUncounted('content')) return;
      return checkPieces(decodeCell(row), account, counts);
    case 'k': {
      const { refs } = decodeChunk(row);
      const { users } = counts.chunks.get(name(own))!;
      if (users === 0) throw new Error('bytes that nothing names');
      if (refs !== users) throw new Error(`it counts ${refs} users and has ${users}`);
      return;
    }
    case 'l': {
      const said = Number(counterOf(row));
      const { bytes } = counts.live.get(name(rest[0]))!;
      if (said !== bytes) throw new Error(`it counts ${said} bytes in use and there are ${bytes}`);
      return;
    }
    case 'u': {
      const { id, due, count } = decodeStage(row);
      if (!hasContainer(rest[0])) throw new Error('its container does not exist');
      if (!(await at.get(dueKey(account, due, rest[0] as bigint, rest[2] as string))))
        throw new Error('its uncommitted blocks would never expire');
      const { blocks } = counts.stages.get(name(textOf(id)))!;
      if (blocks !== count) throw new Error(`it counts ${count} uncommitted blocks and has ${blocks}`);
      return;
    }
    case 'y':
      if (!counts.stages.get(name(own))?.named && !counts.trashed.has(`stage ${name(own)}`))
        throw new Error('a block that no blob has');
      if (isUncounted('stage')) return;
      return checkPieces([decodeBlock(row)], account, counts);
    case 'q':
      decodeMessage(row);
      if (!hasQueue(rest[0], rest[1])) throw new Error('its queue does not exist');
      return;
    case '#':
      counterOf(row);
      if (!hasQueue(rest[0], rest[1])) throw new Error('its queue does not exist');
      return;
    case 'e':
      propertiesOf(storedEntity(row));
      if (!counts.containers.has(name(`table ${rest[0]}`)) && !isTrashed(rest[0]!))
        throw new Error('its table does not exist');
      return;
    case 'x':
      decodeTrash(row);
      return;
    case 's':
    case 'w':
      decodeValue(row);
      return;
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

/** Sums of counters that are not what they should be. */
export function wrongCounters(counts: Counts): string[] {
  return [...missingCounters(counts), ...wrongQueues(counts)];
}

function wrongQueues({ queues }: Counts): string[] {
  return [...queues.values()]
    .filter(({ name, messages, counted }) => name !== undefined && messages !== counted)
    .map(({ name, messages, counted }) => `queue ${name}: it counts ${counted} messages and has ${messages}`);
}

/** Counters that have no row, although they should. */
function missingCounters({ live }: Counts): string[] {
  return [...live]
    .filter(([, { row, bytes }]) => row === 0 && bytes > 0)
    .map(([name, { bytes }]) => `extent ${name.split('/')[1]}: it counts 0 bytes in use and there are ${bytes}`);
}

async function checkContentOf(at: Snapshot, row: Row, counts: Counts): Promise<void> {
  const [account, , container, , blob] = decodeKey(row.key) as [bigint, string, bigint, bigint, string];
  const head = decodeHead(row);
  if (head.contentId !== undefined) {
    idOf(head.contentId);
    const content = counts.contents.get(nameOf(account, head.contentId))?.row;
    if (!content) throw new Error('its content is missing');
    if (content.length !== head.length) throw new Error(`its content has ${content.length} bytes, not ${head.length}`);
    return;
  }
  const inline = await at.get(inlineKey(account, container, blob));
  if (!inline) throw new Error('its content is missing');
  const bytes = decodeBytes(inline);
  if (bytes.length !== head.length) throw new Error(`its content has ${bytes.length} bytes, not ${head.length}`);
  if (crc64Base64(bytes) !== head.crc64) throw new Error('its content does not match its checksum');
}

function checkContent({ refs, length }: Content, { heads, end, gap }: ContentCount): void {
  if (heads === 0) throw new Error('content that no blob has');
  if (refs !== heads) throw new Error(`it counts ${refs} users and has ${heads}`);
  if (gap !== undefined) throw new Error(`its byte ${gap} is missing, or is there twice`);
  if (end !== length) throw new Error(`it has ${end} bytes, not ${length}`);
}

function checkPieces(pieces: readonly Piece[], account: bigint, { chunks }: Counts): void {
  for (const { parts } of pieces) {
    for (const { chunk, length } of parts) {
      const { row } = chunks.get(nameOf(account, textOf(chunk))) ?? {};
      if (!row) throw new Error(`bytes that it names are missing: chunk ${textOf(chunk)}`);
      if (row.length !== length)
        throw new Error(
          `bytes that it names have another length: chunk ${textOf(chunk)} has ${row.length}, not ${length}`,
        );
    }
  }
}
