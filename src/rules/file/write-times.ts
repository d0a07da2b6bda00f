/**
 * When an open shows the time of the writes through it. As in NTFS, the first write shows its time two seconds later, and a further one when the file
 * is closed; a flush, or a change of the length or the properties, shows it at once. Everybody else sees the time that is stored: that of each write.
 */
import { TICKS_PER_SECOND } from '../../base/time.ts';

const DELAY = 2n * TICKS_PER_SECOND;

export interface WriteTimes {
  readonly hasWritten: boolean;
  readonly hidden: HiddenWrite | undefined;
}

interface HiddenWrite {
  /** What is shown meanwhile: the time before the write. */
  readonly shown: bigint;
  /** The time of the write. If another is stored, another client has set it, and it is shown. */
  readonly stored: bigint;
  /** Undefined: until the close. */
  readonly until: bigint | undefined;
}

/** What a write did to the time of the last write of its file. */
export interface LastWriteChange {
  readonly before: bigint;
  readonly stored: bigint;
}

export const NO_WRITES: WriteTimes = { hasWritten: false, hidden: undefined };

export function afterWrite(times: WriteTimes, { before, stored }: LastWriteChange): WriteTimes {
  const { hasWritten, hidden } = times;
  if (before === stored) return times;
  const isHidden = hidden?.stored === before && isHiddenAt(hidden, stored);
  return {
    hasWritten: true,
    hidden: isHidden
      ? { ...hidden, stored }
      : { shown: before, stored, until: hasWritten ? undefined : stored + DELAY },
  };
}

export const afterFlush = ({ hasWritten }: WriteTimes): WriteTimes => ({ hasWritten, hidden: undefined });

export function shownLastWrite({ hidden }: WriteTimes, stored: bigint, now: bigint): bigint {
  return hidden?.stored === stored && isHiddenAt(hidden, now) ? hidden.shown : stored;
}

/** The time of a write that the close shows, as its own time. Undefined: there is none. */
export function writeShownByClose({ hidden }: WriteTimes): bigint | undefined {
  return hidden && hidden.until === undefined ? hidden.stored : undefined;
}

const isHiddenAt = ({ until }: HiddenWrite, now: bigint): boolean => until === undefined || now < until;
