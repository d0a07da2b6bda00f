/** Looks at every row of one committed state: can it be read, and does everything that it refers to exist? */
import { crc64Base64 } from '../base/hashes.ts';
import { after, decodeKey, encodeKey, type Key, past } from '../partition/keys.ts';
import type { Partition, Row, Snapshot } from '../partition/partition.ts';
import { decodeBytes, decodeValue } from '../partition/values.ts';
import { decodeHead, decodeName, decodeProperties, inlineKey } from './blob/rows.ts';
import { othersFirst } from './storage.ts';

export interface CheckReport {
  readonly rows: number;
  readonly containers: number;
  readonly blobs: number;
  readonly bytes: number;
  /** What is wrong, in plain words. */
  readonly findings: readonly string[];
}

const SLICE = { limit: 200, bytesMax: 1 << 20 };
const EVERYTHING = { from: '' as Key, to: past('' as Key) };

export function check(partition: Partition, onProgress: (rows: number) => void = () => {}): Promise<CheckReport> {
  return partition.read(async (at) => {
    const known = await containersOf(at);
    const tally = { rows: 0, containers: 0, blobs: 0, bytes: 0, findings: [] as string[] };
    for await (const row of allRows(at)) {
      tally.rows++;
      try {
        await checkRow(at, row, known, tally);
      } catch (error) {
        tally.findings.push(`${describe(row.key)}: ${(error as Error).message}`);
      }
      if (tally.rows % 1_000 === 0) onProgress(tally.rows);
    }
    return tally;
  });
}

/** By account and id: containers that have a name, and those in the trash. */
interface Known {
  readonly named: Set<string>;
  readonly trashed: Set<string>;
}

async function containersOf(at: Snapshot): Promise<Known> {
  const known: Known = { named: new Set(), trashed: new Set() };
  for await (const row of allRows(at)) {
    try {
      const [account, type, , id] = decodeKey(row.key);
      if (type === 'n') known.named.add(`${account}/${decodeName(row)}`);
      if (type === 'x') known.trashed.add(`${account}/${id}`);
    } catch {
      // It is reported when the turn comes to the row itself.
    }
  }
  return known;
}

async function checkRow(at: Snapshot, row: Row, known: Known, tally: Tally): Promise<void> {
  const [account, type, ...rest] = decodeKey(row.key);
  if (account === 'account') {
    decodeValue(row);
    return;
  }
  const container = (id: unknown) => `${account}/${id}`;
  const exists = (id: unknown) => known.named.has(container(id)) || known.trashed.has(container(id));
  switch (type) {
    case 'n':
      tally.containers++;
      if (!(await at.get(encodeKey([account!, 'p', rest[0]!, decodeName(row)]))))
        throw new Error('it has no properties');
      return;
    case 'p':
      decodeProperties(row);
      if (!known.named.has(container(rest[1]))) throw new Error('no name leads to it');
      return;
    case 'b': {
      tally.blobs++;
      const head = decodeHead(row);
      tally.bytes += head.length;
      if (!exists(rest[0])) throw new Error('its container does not exist');
      const inline = await at.get(inlineKey(account as bigint, rest[0] as bigint, rest[2] as string));
      if (!inline) throw new Error('its content is missing');
      const bytes = decodeBytes(inline);
      if (bytes.length !== head.length) throw new Error(`its content has ${bytes.length} bytes, not ${head.length}`);
      if (crc64Base64(bytes) !== head.crc64) throw new Error('its content does not match its checksum');
      return;
    }
    case 'i':
      decodeBytes(row);
      if (!(await at.get(encodeKey([account!, 'b', ...rest])))) throw new Error('content that no blob has');
      return;
    case 's':
    case 'x':
      decodeValue(row);
      return;
    default:
      throw new Error('a row of a kind that this version does not know');
  }
}

type Tally = { rows: number; containers: number; blobs: number; bytes: number; findings: string[] };

async function* allRows(at: Snapshot): AsyncIterable<Row> {
  for (let from = EVERYTHING.from; ; ) {
    const rows = await at.scan({ from, to: EVERYTHING.to }, SLICE);
    yield* rows;
    const last = rows.at(-1);
    if (!last) return;
    from = after(last.key);
    await othersFirst();
  }
}

function describe(key: Key): string {
  try {
    return `row ${JSON.stringify(decodeKey(key).map((part) => (typeof part === 'bigint' ? part.toString() : part)))}`;
  } catch {
    return `row ${Buffer.from(key, 'latin1').toString('hex')}`;
  }
}
