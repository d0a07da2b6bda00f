/** What a power cut may leave of the files: everything that no finished sync confirmed can be anything. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Call, isSync, isWrite } from './trace.ts';

export interface Unconfirmed {
  /** The file's name within the folder. */
  readonly file: string;
  readonly position: number;
  readonly length: number;
}

/** Writes to files of this folder that no sync has confirmed which began after them. */
export function unconfirmedIn(calls: readonly Call[], folder: string): Unconfirmed[] {
  const positions = new Map<string, number>();
  const found: Unconfirmed[] = [];
  for (const call of calls) {
    const [, descriptor = '', path = ''] = /^(\d+)<([^>]*)>/.exec(call.text) ?? [];
    if (!path.startsWith(`${folder}/`)) continue;
    if (call.name === 'lseek') positions.set(descriptor, numberAt(call, /= (\d+)$/) ?? 0);
    if (!isWrite(call)) continue;
    const file = path.slice(folder.length + 1);
    const position = numberAt(call, /, (\d+)\) = \d+$/);
    // How much of it was written before the process was killed is not known.
    const length = numberAt(call, /= (\d+)$/) ?? numberAt(call, /, (\d+), \d+\)?$/) ?? 0;
    const isConfirmed = calls.some((other) => other.entry > call.exit && isSync(other, new RegExp(`${file}>`)));
    const at = call.name === 'writev' ? (positions.get(descriptor) ?? 0) : position;
    if (!isConfirmed) found.push({ file, position: at ?? 0, length });
  }
  return found;
}

function numberAt({ text }: Call, pattern: RegExp): number | undefined {
  const [, digits] = pattern.exec(text) ?? [];
  return digits === undefined ? undefined : Number(digits);
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
