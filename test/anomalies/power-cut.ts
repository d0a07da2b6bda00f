/** Simulates a power cut on recorded system calls: bytes that no finished sync confirmed can be anything. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Call, isSync, isWrite } from './strace.ts';

export interface Unconfirmed {
  /** The file's name within the folder. */
  readonly file: string;
  readonly position: number;
  readonly length: number;
}

/** The system calls that are needed: opens (which descriptors write through), seeks, writes and syncs. */
export const TRACED = 'openat,close,pwrite64,pwritev,pwritev2,write,writev,lseek,fdatasync,fsync';

/**
 * Bytes of this folder's files that are not confirmed: no sync has ended well that began after they were written, and of those that did
 * begin the first did not fail, for what a failed sync leaves behind is never synced again. A write through a descriptor with O_DSYNC is on disk
 * when it ends. One that the kill has cut short was, or was not: LMDB writes its meta pages so, and relies on a sector being old or new.
 */
export function unconfirmedIn(calls: readonly Call[], folder: string): Unconfirmed[] {
  const offsets = new Map<string, number>();
  const through = new Set<string>();
  let found: Unconfirmed[] = [];
  for (const call of calls) {
    if (call.name === 'openat') {
      const opened = /= (\d+)</.exec(call.text)?.[1] ?? '';
      offsets.set(opened, 0);
      if (/O_D?SYNC/.test(call.text)) through.add(opened);
      else through.delete(opened);
    }
    const [, descriptor = '', path = ''] = /^(\d+)<([^>]*)>/.exec(call.text) ?? [];
    if (!path.startsWith(`${folder}/`)) continue;
    if (call.name === 'lseek') offsets.set(descriptor, Number(/= (\d+)$/.exec(call.text)?.[1] ?? 0));
    if (!isWrite(call)) continue;
    const { length, position = offsets.get(descriptor) ?? 0 } = extentOf(call);
    if (!call.name.startsWith('p')) offsets.set(descriptor, position + length);
    const file = path.slice(folder.length + 1);
    const isOfFile = new RegExp(`[/]${file.replaceAll('.', '\\.')}>`);
    const synced = calls.find(
      (other) => other.entry > call.exit && /^f(data)?sync$/.test(other.name) && isOfFile.test(other.text),
    );
    const written = { file, position, length };
    if (through.has(descriptor) || (synced && isSync(synced, isOfFile)))
      found = found.flatMap((one) => outside(one, written));
    else found.push(written);
  }
  return found;
}

/** The parts of one range that another does not cover. */
function outside(one: Unconfirmed, other: Unconfirmed): Unconfirmed[] {
  const [end, otherEnd] = [one.position + one.length, other.position + other.length];
  if (one.file !== other.file || otherEnd <= one.position || end <= other.position) return [one];
  const before = { ...one, length: other.position - one.position };
  const after = { ...one, position: otherEnd, length: end - otherEnd };
  return [before, after].filter(({ length }) => length > 0);
}

/** Of a call that the kill has cut short it is not known how much was written: all of it may have been. */
function extentOf({ name, text }: Call): { length: number; position?: number } {
  const [asked = '', result] = text.replace(/\)? = \?$/, '').split(/\)? = (?=-?\d+$)/);
  const numbers = (/((?:, \d+)+)\)?$/.exec(asked)?.[1] ?? '').split(', ').slice(1).map(Number);
  const pieces = [...asked.matchAll(/iov_len=(\d+)/g)].reduce((sum, [, length]) => sum + Number(length), 0);
  const length = result === undefined ? pieces || numbers[0] : Math.max(0, Number(result));
  const position = name.startsWith('p') ? numbers[1] : undefined;
  if (length === undefined || (position === undefined && name.startsWith('p')))
    throw new Error(`unread: ${name}(${text}`);
  return position === undefined ? { length } : { length, position };
}

/** Each of them stays, is zeros, or is something else, sector by sector. */
export function cutPower(
  folder: string,
  unconfirmed: readonly Unconfirmed[],
  random: { below(limit: number): number },
): void {
  const files = new Map<string, Buffer>();
  for (const { file, position, length } of unconfirmed) {
    const bytes = files.get(file) ?? readFileSync(join(folder, file));
    files.set(file, bytes);
    for (let at = position; at < Math.min(position + length, bytes.length); ) {
      const end = Math.min(position + length, bytes.length, at - (at % SECTOR_BYTES) + SECTOR_BYTES);
      const fate = random.below(3);
      if (fate === 1) bytes.fill(0, at, end);
      else if (fate === 2) bytes.fill(random.below(256), at, end);
      at = end;
    }
  }
  for (const [file, bytes] of files) writeFileSync(join(folder, file), bytes);
}

const SECTOR_BYTES = 512;
