/** Plain bytes beside a range map: what every generation must show. Bytes are written in units, which fit no border of a map page. */
import { bytesOfSeed } from './content-store.ts';

export const UNIT = 3_331;
/** Units of a content: some map pages. */
export const UNITS = 700;
export const LENGTH = UNIT * UNITS;

/** What a unit shows, and the generation that changed it last. */
interface Unit {
  /** 0: nothing that was written, or cleared again. */
  readonly seed: number;
  readonly born: number;
  /** Of a copy: the unit that was written. */
  readonly of?: number | undefined;
}

export interface ModelState {
  readonly units: readonly Unit[];
}

export class ModelContent {
  gen = 1;
  units: readonly Unit[] = Array.from({ length: UNITS }, () => ({ seed: 0, born: 0 }));
  /** By generation: what it showed when it was held. */
  readonly held = new Map<number, ModelState>();

  write(from: number, count: number, seed: number): void {
    this.#change(from, from + count, seed);
  }

  /** The unit after the last one that can be seen. */
  get end(): number {
    return this.units.findLastIndex(({ seed }) => seed !== 0) + 1;
  }

  /** Where nothing is, nothing changes. */
  clear(from: number, to: number): void {
    this.#change(from, to, 0);
  }

  /** What a state shows, at another place. */
  share(to: number, state: ModelState, from: number, count: number): void {
    const { gen } = this;
    const copied = state.units.slice(from, from + count).map(({ seed, of }, i) => ({ seed, of: of ?? from + i }));
    this.units = this.units.map((unit, i) => {
      const source = copied[i - to];
      if (!source || (source.seed === 0 && unit.seed === 0)) return unit;
      return { ...source, born: gen };
    });
  }

  /** The state as it is now, under the number of its generation. */
  hold(): number {
    const gen = this.gen++;
    this.held.set(gen, { units: this.units });
    return gen;
  }

  copy(state: ModelState): ModelContent {
    const copy = new ModelContent();
    copy.units = state.units.map(({ seed, of }) => ({ seed, of, born: 1 }));
    return copy;
  }

  #change(from: number, to: number, seed: number): void {
    const { gen } = this;
    this.units = this.units.map((unit, i) =>
      i < from || i >= to || (seed === 0 && unit.seed === 0) ? unit : { seed, born: gen },
    );
  }
}

export function expectedBytes({ units }: ModelState, from: number, to: number): Buffer {
  const first = Math.floor(from / UNIT);
  const last = Math.ceil(to / UNIT);
  const pieces = units.slice(first, last).map(({ seed, of }, i) => unitBytes(seed, of ?? first + i));
  return Buffer.concat(pieces).subarray(from - first * UNIT, to - first * UNIT);
}

const NOISE = bytesOfSeed(1, 64 * UNIT);
const NOTHING = Buffer.alloc(UNIT);

/** Other bytes for every seed and unit. */
export function unitBytes(seed: number, unit: number): Buffer {
  if (seed === 0) return NOTHING;
  const from = (seed * 7_919 + unit * 104_729) % (NOISE.length - UNIT);
  return NOISE.subarray(from, from + UNIT);
}

export const bytesOfUnits = (from: number, count: number, seed: number): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, i) => unitBytes(seed, from + i)));

interface ByteRange {
  readonly from: number;
  readonly to: number;
}

export function expectedRanges({ units }: ModelState): ByteRange[] {
  return join(units.map(({ seed }) => seed !== 0));
}

/** What was written after this generation, and what was cleared and is not written again. */
export function expectedChanges({ units }: ModelState, since: number): (ByteRange & { readonly isWritten: boolean })[] {
  const changed = (isWritten: boolean) =>
    join(units.map(({ seed, born }) => born > since && (seed !== 0) === isWritten)).map((range) => ({
      ...range,
      isWritten,
    }));
  return [...changed(true), ...changed(false)].sort((one, other) => one.from - other.from);
}

function join(flags: readonly boolean[]): ByteRange[] {
  const ranges: { from: number; to: number }[] = [];
  for (const [i, flag] of flags.entries()) {
    const last = ranges.at(-1);
    if (!flag) continue;
    if (last?.to === i * UNIT) last.to += UNIT;
    else ranges.push({ from: i * UNIT, to: (i + 1) * UNIT });
  }
  return ranges;
}
