/** The bytes of a content that were written, and since when: a naive model, in which every step is a moment. */

const SECTOR = 512;

interface SectorState {
  readonly moment: number;
  /** Of each byte, whether it was written and not cleared since. */
  readonly written: readonly boolean[];
}

const NOTHING: readonly boolean[] = Array.from({ length: SECTOR }, () => false);

export interface SectorChange {
  readonly sector: number;
  readonly isWritten: boolean;
}

export class SectorHistory {
  /** By sector, in the order of the moments. */
  readonly #states = new Map<number, readonly SectorState[]>();

  write(moment: number, from: number, to: number): void {
    this.#change(moment, from, to, true);
  }

  /** Whole sectors are released, and in the others zeros are written. */
  clear(moment: number, from: number, to: number): void {
    const [first, last] = [Math.ceil(from / SECTOR) * SECTOR, Math.floor(to / SECTOR) * SECTOR];
    this.#change(moment, from, Math.min(first, to), true);
    this.#change(moment, first, last, false);
    this.#change(moment, Math.max(last, from), to, true);
  }

  truncate(moment: number, length: number): void {
    const end = Math.max(0, ...this.#states.keys()) + 1;
    this.#change(moment, length, end * SECTOR, false);
  }

  /** What a copy of this content, as it was then, has at first. */
  copy(then: number, moment: number): SectorHistory {
    const copy = new SectorHistory();
    for (const [sector, states] of this.#states) {
      const { written } = stateAt(states, then);
      if (written.includes(true)) copy.#states.set(sector, [{ moment, written }]);
    }
    return copy;
  }

  /** The sectors that changed after one moment, up to another one. */
  changes(after: number, upTo: number): SectorChange[] {
    return [...this.#states]
      .map(([sector, states]) => ({ sector, ...stateAt(states, upTo) }))
      .filter(({ moment }) => moment > after)
      .map(({ sector, written }) => ({ sector, isWritten: written.includes(true) }));
  }

  /** Where nothing is written, a clear changes nothing. */
  #change(moment: number, from: number, to: number, isWritten: boolean): void {
    for (let sector = Math.floor(from / SECTOR); sector * SECTOR < to; sector++) {
      const states = this.#states.get(sector) ?? [];
      const { written } = stateAt(states, moment);
      const isInside = (i: number) => sector * SECTOR + i >= from && sector * SECTOR + i < to;
      if (!written.some((was, i) => isInside(i) && (isWritten || was))) continue;
      const next = written.map((was, i) => (isInside(i) ? isWritten : was));
      this.#states.set(sector, [...states, { moment, written: next }]);
    }
  }
}

const stateAt = (states: readonly SectorState[], moment: number): SectorState =>
  states.findLast((state) => state.moment <= moment) ?? { moment: -1, written: NOTHING };
