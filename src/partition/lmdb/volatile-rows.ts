/**
 * Volatile rows (MVCC): in memory alone, in versions that are numbered by their commit groups as those of the overlay are. No log and no
 * checkpoint has them, so a removed row leaves nothing behind once no open snapshot shows it.
 */
import type { Key, Range } from '../keys.ts';
import type { Row, Timestamp } from '../partition.ts';
import { SortedKeys } from '../sorted-keys.ts';
import { asBuffer } from '../values.ts';

class VolatileVersion {
  readonly key: Key;
  readonly group: number;
  /** Kept while an open snapshot may show it, or the group may be undone. */
  older: VolatileVersion | undefined;
  version: Timestamp = 0n;
  /**
   * One character per byte; undefined: the row was removed. A string is in one piece with its bytes, where a Buffer needs 300 bytes for itself,
   * and a piece of a shared one would keep the whole of it for as long as the row lives.
   */
  value: string | undefined = undefined;

  constructor(key: Key, group: number, older: VolatileVersion | undefined) {
    this.key = key;
    this.group = group;
    this.older = older;
  }
}

export class VolatileRows {
  /** The newest version of each key. */
  private readonly newest = new Map<Key, VolatileVersion>();
  private readonly keys = new SortedKeys();
  private group = 0;
  /** Of the last group, one per key. */
  written: VolatileVersion[] = [];
  /** Versions that replaced another or removed the row, by group: what they hide is released when no snapshot shows it any more. */
  private replacing: VolatileVersion[] = [];
  private released = 0;

  /** @param oldest the group of the oldest open snapshot */
  beginGroup(group: number, oldest: number): void {
    this.release(oldest);
    this.group = group;
    this.written = [];
  }

  /** @param value undefined: the row is removed */
  write(key: Key, timestamp: Timestamp, value: Uint8Array | undefined): void {
    let version = this.newest.get(key);
    if (version?.group !== this.group) {
      if (version === undefined) this.keys.add(key);
      version = new VolatileVersion(key, this.group, version);
      this.newest.set(key, version);
      this.written.push(version);
    }
    version.version = timestamp;
    version.value = value && asBuffer(value).toString('latin1');
  }

  endGroup(): void {
    for (const version of this.written) if (version.older || version.value === undefined) this.replacing.push(version);
  }

  /** The last group could not be logged. */
  undoGroup(): void {
    for (const { key, older } of this.written) {
      if (older) this.newest.set(key, older);
      else this.deleteKey(key);
    }
    this.replacing = this.replacing.filter(({ group }) => group !== this.group);
    this.written = [];
  }

  get(key: Key, group: number): Row | undefined {
    const found = this.at(key, group);
    return found?.value === undefined ? undefined : rowFrom(found, found.value);
  }

  versionOf(key: Key, group: number): Timestamp | undefined {
    const found = this.at(key, group);
    return found?.value === undefined ? undefined : found.version;
  }

  *rowsIn(range: Range, group: number, reverse: boolean): Iterable<Row> {
    for (const key of this.keys.in(range, reverse)) {
      const row = this.get(key, group);
      if (row) yield row;
    }
  }

  /** True also for removed rows and rows of later groups. */
  hasAny(range: Range): boolean {
    if (this.newest.size === 0) return false;
    for (const _ of this.keys.in(range)) return true;
    return false;
  }

  private at(key: Key, group: number): VolatileVersion | undefined {
    let version = this.newest.get(key);
    while (version !== undefined && version.group > group) version = version.older;
    return version;
  }

  private release(oldest: number): void {
    const { replacing } = this;
    while (this.released < replacing.length && replacing[this.released]!.group <= oldest) {
      const version = replacing[this.released++]!;
      version.older = undefined;
      if (version.value === undefined && this.newest.get(version.key) === version) this.deleteKey(version.key);
    }
    // The released versions go in one step: shifting them off one by one would move the others each time.
    if (this.released * 2 < replacing.length) return;
    this.replacing = replacing.slice(this.released);
    this.released = 0;
  }

  private deleteKey(key: Key): void {
    this.newest.delete(key);
    this.keys.delete(key);
  }
}

function rowFrom({ key, version }: VolatileVersion, value: string): Row {
  return { key, version, value: Buffer.from(value, 'latin1') };
}
