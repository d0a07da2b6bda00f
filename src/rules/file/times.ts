/** The times of a file or directory as SMB has them: creation, last write, change. Instants are ticks. */
import { parseIso7 } from '../../base/time.ts';

/** What a request says about one of the times: an instant, or a word. */
export type AskedTime = bigint | 'now' | 'preserve' | 'source';

/** Windows counts from 1601 on; what is earlier has no FILETIME. */
const EARLIEST = 504_911_232_000_000_000n;

/** Undefined: neither a time nor one of these words. */
export function parseTime<Word extends AskedTime & string>(
  text: string,
  words: readonly Word[],
): bigint | Word | undefined {
  const word = words.find((one) => one === text.toLowerCase());
  if (word !== undefined) return word;
  const ticks = parseIso7(text);
  return ticks === undefined || ticks < EARLIEST ? undefined : ticks;
}

export interface FileTimes {
  readonly creation: bigint;
  readonly lastWrite: bigint;
  readonly change: bigint;
  /** Only as an SMB client set it: reads do not change it. Undefined: that of the last write. */
  readonly access?: bigint | undefined;
}

export type AskedTimes = { readonly [Time in 'creation' | 'lastWrite' | 'change']: AskedTime } & {
  readonly access?: bigint | undefined;
};

/** `current`: what `preserve` keeps and, in a copy, the source, which `source` takes over. A file that is created has none. */
export function resolveTimes(asked: AskedTimes, now: bigint, current?: FileTimes): FileTimes {
  const resolve = (time: 'creation' | 'lastWrite' | 'change'): bigint => {
    const value = asked[time];
    if (typeof value === 'bigint') return value;
    return value === 'now' ? now : (current?.[time] ?? now);
  };
  const access = asked.access ?? current?.access;
  return {
    ...{ creation: resolve('creation'), lastWrite: resolve('lastWrite'), change: resolve('change') },
    ...(access !== undefined && { access }),
  };
}
