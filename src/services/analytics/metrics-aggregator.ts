/** Requests that are counted and not written yet, by hour and by minute. */
import type { AnsweredRequest } from '../../rules/analytics/access-record.ts';
import { addRequest, addTally, newTally, requestsIn, type Tally } from '../../rules/analytics/request-counters.ts';
import { partitionOf } from '../../rules/analytics/time-partitions.ts';
import type { ServiceName } from '../common/names.ts';
import type { AccountId } from '../common/storage.ts';

export type Span = 'hour' | 'minute';

/** Rows of one partition of a metrics table. */
export interface Reading {
  readonly account: AccountId;
  readonly service: ServiceName;
  readonly span: Span;
  readonly partitionKey: string;
  /** By row key. */
  readonly tallies: Map<string, Tally>;
}

export interface Meter {
  count(account: AccountId, span: Span, request: AnsweredRequest, perApi: boolean): void;
  /** Hands each reading over. One that fails stays for another time, unless it is refused for good. */
  writeAll(write: (reading: Reading) => Promise<'written' | 'refused' | 'later'>): Promise<void>;
  /** How many requests were not counted since this was asked last. */
  takeDropped(): number;
  clear(): void;
}

export function createMeter({ talliesMax = 20_000 }: { readonly talliesMax?: number } = {}): Meter {
  const readings = new Map<string, Reading>();
  let tallies = 0;
  let dropped = 0;

  function tallyAt(reading: Reading, rowKey: string): Tally | undefined {
    let tally = reading.tallies.get(rowKey);
    if (tally || tallies >= talliesMax) return tally;
    tallies++;
    tally = newTally();
    reading.tallies.set(rowKey, tally);
    return tally;
  }

  function readingAt(wanted: Omit<Reading, 'tallies'>): Reading {
    const key = `${wanted.account} ${wanted.service} ${wanted.span} ${wanted.partitionKey}`;
    let reading = readings.get(key);
    if (!reading) {
      reading = { ...wanted, tallies: new Map() };
      readings.set(key, reading);
    }
    return reading;
  }

  return {
    count(account, span, request, perApi) {
      const { service } = request;
      const reading = readingAt({ account, service, span, partitionKey: partitionOf(request.started, span) });
      const all = tallyAt(reading, 'user;All');
      const own = perApi ? tallyAt(reading, `user;${request.operation ?? 'Unknown'}`) : undefined;
      if (!all || (perApi && !own)) dropped++;
      for (const tally of [all, own]) if (tally) addRequest(tally, request);
    },
    async writeAll(write) {
      for (const [key, reading] of [...readings]) {
        // What comes from now on is counted anew.
        readings.delete(key);
        tallies -= reading.tallies.size;
        if (reading.tallies.size > 0 && (await write(reading)) === 'later') keep(reading);
      }
    },
    takeDropped() {
      const count = dropped;
      dropped = 0;
      return count;
    },
    clear() {
      readings.clear();
      tallies = 0;
    },
  };

  function keep(reading: Reading): void {
    const newer = readingAt(reading);
    for (const [rowKey, tally] of reading.tallies) {
      const sum = tallyAt(newer, rowKey);
      if (sum) addTally(sum, tally);
      else dropped += requestsIn(tally);
    }
  }
}
