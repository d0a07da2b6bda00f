/** What clients saw of one page blob, compared afterwards with its writes in the order of their ETags: an ETag names one state. */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';

const PAGE = 512;

interface Write {
  readonly from: number;
  readonly to: number;
  /** Undefined: the pages were cleared. */
  readonly bytes: Buffer | undefined;
}

type Observation = (bytes: Buffer, ranges: () => string) => void;

export class PageReplay {
  readonly #length: number;
  readonly #writes = new Map<string, Write>();
  readonly #observations = new Map<string, Observation[]>();

  constructor(length: number) {
    this.#length = length;
  }

  wrote(etag: string, from: number, bytes: Buffer): void {
    this.#add(etag, { from, to: from + bytes.length, bytes });
  }

  cleared(etag: string, from: number, to: number): void {
    this.#add(etag, { from, to, bytes: undefined });
  }

  sawBytes(etag: string, from: number, seen: Buffer): void {
    const to = from + seen.length;
    const digest = digestOf(seen);
    this.#observe(etag, (bytes) =>
      expect(digestOf(bytes.subarray(from, to)), `bytes ${from} to ${to} at ${etag}`).toBe(digest),
    );
  }

  /** @param seen `from-to` of each range, joined by spaces */
  sawRanges(etag: string, seen: string): void {
    this.#observe(etag, (_bytes, ranges) => expect(ranges(), `ranges at ${etag}`).toBe(seen));
  }

  /** @returns the bytes after the last write */
  verify(): Buffer {
    const bytes = Buffer.alloc(this.#length);
    const isWritten = new Uint8Array(this.#length / PAGE);
    const left = new Set(this.#observations.keys());
    // ETags rise with every write and have one length, so that they compare as text.
    for (const etag of [...this.#writes.keys()].sort()) {
      const { from, to, bytes: written } = this.#writes.get(etag)!;
      if (written) written.copy(bytes, from);
      else bytes.fill(0, from, to);
      isWritten.fill(written ? 1 : 0, from / PAGE, to / PAGE);
      for (const observation of this.#observations.get(etag) ?? []) observation(bytes, () => rangesOf(isWritten));
      left.delete(etag);
    }
    expect([...left], 'ETags that no write was answered with').toEqual([]);
    return bytes;
  }

  #add(etag: string, write: Write): void {
    expect(this.#writes.has(etag)).toBe(false);
    this.#writes.set(etag, write);
  }

  #observe(etag: string, observation: Observation): void {
    this.#observations.set(etag, [...(this.#observations.get(etag) ?? []), observation]);
  }
}

const digestOf = (bytes: Buffer) => createHash('sha1').update(bytes).digest('hex');

function rangesOf(isWritten: Uint8Array): string {
  const ranges: string[] = [];
  for (let page = 0; page < isWritten.length; page++) {
    if (!isWritten[page]) continue;
    const first = page;
    while (isWritten[page + 1]) page++;
    ranges.push(`${first * PAGE}-${(page + 1) * PAGE - 1}`);
  }
  return ranges.join(' ');
}
