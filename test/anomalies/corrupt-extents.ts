/** Corrupts the extent files of a data folder at random, and knows which blobs each corruption affects. */
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { randomOf } from '../support/random.mjs';

type Random = ReturnType<typeof randomOf>;
/** The bytes of each file. */
type Image = ReadonlyMap<string, Buffer>;

/** Bytes of a blob that lie together: a chunk. */
interface Piece {
  readonly path: string;
  readonly file: string;
  /** Of its header; then come its bytes, and one checksum for every 64 KiB. */
  readonly start: number;
  readonly from: number;
  readonly to: number;
}

export interface Corruption {
  readonly kind: 'flip' | 'cut' | 'swap';
  /** Blobs of which bytes or checksums differ from what was written. */
  readonly corrupted: ReadonlySet<string>;
  /** Blobs of which a header is not. Their bytes can still be served. */
  readonly lostHeaders: ReadonlySet<string>;
}

const HEADER_BYTES = 64;
const BLOCK_BYTES = 64 << 10;
const DRAWS = 30;

/** @param contents by path, in the stretches that were put at once; no two are alike */
export function openExtentCorruptor(location: string, contents: ReadonlyMap<string, readonly Buffer[]>) {
  const folder = join(location, 'extents');
  const whole: Image = new Map(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file))]));
  const pieces = [...contents].flatMap(([path, stretches]) => stretches.map((bytes) => pieceOf(whole, path, bytes)));

  /** In place: a server that has the file open reads the new bytes. */
  function write(image: Image): void {
    for (const [file, bytes] of image) {
      writeFileSync(join(folder, file), bytes, { flag: 'r+' });
      truncateSync(join(folder, file), bytes.length);
    }
  }

  return {
    files: whole.size,
    /** Several at once, of which no two concern the same blob. */
    corrupt(random: Random): Corruption[] {
      let image = whole;
      const corruptions: Corruption[] = [];
      const taken = new Set<string>();
      for (let draw = 0; draw < DRAWS; draw++) {
        const { kind, after } = corruptOnce(random, image, pieces);
        const corrupted = changed(pieces, image, after, ({ from, to }) => [from, to]);
        const lostHeaders = changed(pieces, image, after, ({ start, from }) => [start, from]);
        const affected = [...corrupted, ...lostHeaders];
        if (affected.some((path) => taken.has(path))) continue;
        for (const path of affected) taken.add(path);
        corruptions.push({ kind, corrupted, lostHeaders });
        image = after;
      }
      write(image);
      return corruptions;
    },
    restore: () => write(whole),
  };
}

function pieceOf(image: Image, path: string, bytes: Buffer): Piece {
  for (const [file, all] of image) {
    const from = all.indexOf(bytes);
    if (from < 0) continue;
    const to = from + bytes.length + 4 * Math.ceil(bytes.length / BLOCK_BYTES);
    return { path, file, start: from - HEADER_BYTES, from, to };
  }
  throw new Error(`The bytes of ${path} are in no extent.`);
}

function changed(
  pieces: readonly Piece[],
  before: Image,
  after: Image,
  stretch: (piece: Piece) => [number, number],
): Set<string> {
  const at = (image: Image, piece: Piece) => image.get(piece.file)!.subarray(...stretch(piece));
  return new Set(pieces.filter((piece) => !at(before, piece).equals(at(after, piece))).map(({ path }) => path));
}

function corruptOnce(
  random: Random,
  image: Image,
  pieces: readonly Piece[],
): { kind: Corruption['kind']; after: Image } {
  const file = random.oneOf([...image.keys()]);
  const bytes = image.get(file)!;
  const kind = random.oneOf(['flip', 'flip', 'flip', 'flip', 'cut', 'swap', 'swap'] as const);
  if (kind === 'flip') {
    const flipped = Buffer.from(bytes);
    const at = random.below(bytes.length);
    flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << random.below(8)), at);
    return { kind, after: new Map(image).set(file, flipped) };
  }
  if (kind === 'cut') {
    return { kind, after: new Map(image).set(file, bytes.subarray(0, random.below(bytes.length))) };
  }
  return { kind, after: swap(random, image, pieces) };
}

/** Misdirected writes: sectors, the blocks that have a checksum, or whole chunks are swapped. */
function swap(random: Random, image: Image, pieces: readonly Piece[]): Image {
  const [one, other] = [random.oneOf(pieces), random.oneOf(pieces)];
  const shorter = Math.min(one.to - one.from, other.to - other.from);
  const block = random.below(Math.ceil(shorter / BLOCK_BYTES)) * BLOCK_BYTES;
  const [from, length] = random.oneOf([
    [random.below(shorter), 4096],
    [block, BLOCK_BYTES],
    [0, shorter],
    [-HEADER_BYTES, HEADER_BYTES + shorter],
  ] as const);
  const after = new Map([...image].map(([file, bytes]) => [file, Buffer.from(bytes)]));
  const [to, source] = [after.get(one.file)!, after.get(other.file)!];
  const end = Math.min(length, to.length - one.from - from, source.length - other.from - from);
  if (one === other || end <= 0) return image;
  const kept = Buffer.from(to.subarray(one.from + from, one.from + from + end));
  source.copy(to, one.from + from, other.from + from, other.from + from + end);
  kept.copy(source, other.from + from);
  return after;
}
