/** The Range and x-ms-range headers. Both ends are included. */
export interface RequestedRange {
  readonly from: number;
  readonly to?: number;
}

export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

const RANGE = /^bytes=(\d+)-(\d*)$/i;

/** Undefined: a range that the service does not support, such as the last n bytes. It answers as if there were no range. */
export function parseRange(text: string): RequestedRange | undefined {
  const match = RANGE.exec(text.trim());
  if (match === null) return undefined;
  const from = Number(match[1]);
  if (match[2] === '') return { from };
  const to = Number(match[2]);
  return to < from ? undefined : { from, to };
}

/** A range may reach past the end but must begin before it, so an empty blob has no range at all. */
export function resolveRange(range: RequestedRange, length: number): ByteRange | 'InvalidRange' {
  if (range.from >= length) return 'InvalidRange';
  return { from: range.from, to: Math.min(range.to ?? length - 1, length - 1) };
}
