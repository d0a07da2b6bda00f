/** Histogram: counts values by fixed upper bounds. One observation costs a few comparisons and no memory. */
export class Histogram {
  /** Rising; values above the last bound count, too. */
  readonly bounds: readonly number[];
  /** Of the values up to each bound and above the one before; the last are those above all bounds. */
  readonly counts: number[];
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    const { bounds } = this;
    let index = 0;
    while (index < bounds.length && value > bounds[index]!) index++;
    this.counts[index]!++;
    this.sum += value;
  }
}

/** From a tenth of a millisecond, the fastest sync, to ten seconds. */
export const SECONDS_BOUNDS: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

export const COUNT_BOUNDS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
