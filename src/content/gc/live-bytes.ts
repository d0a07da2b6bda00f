/** Live bytes per extent, summed from the counters: what the garbage collector decides by. */
import { decodeKey, encodeKey, keyAfter, prefixEnd, type Range } from '../../partition/keys.ts';
import type { Snapshot } from '../../partition/partition.ts';
import { decodeCounter } from '../../partition/values.ts';
import { liveBytesIn } from '../rows.ts';

const SLICE_ROWS = 1_000;

/**
 * Live bytes by extent, summed over all accounts that have rows, not over those that the server was started with: an account
 * that is left out of the configuration for a while must find its bytes again.
 */
export async function sumLiveBytes(at: Snapshot): Promise<Map<string, number>> {
  const live = new Map<string, number>();
  const everything: Range = { from: encodeKey([0n]), to: prefixEnd(encodeKey([0xffff_ffff_ffff_ffffn])) };
  for (let from = everything.from; ; ) {
    const [first] = await at.scan({ from, to: everything.to }, { limit: 1 });
    if (!first) return live;
    const account = decodeKey(first.key)[0] as bigint;
    for await (const row of scanRows(at, liveBytesIn(account))) {
      const extent = decodeKey(row.key)[2] as string;
      live.set(extent, (live.get(extent) ?? 0) + Number(decodeCounter(row)));
    }
    from = prefixEnd(encodeKey([account]));
  }
}

async function* scanRows(at: Snapshot, range: Range) {
  for (let { from } = range; ; ) {
    const rows = await at.scan({ from, to: range.to }, { limit: SLICE_ROWS });
    yield* rows;
    const last = rows.at(-1);
    if (!last || rows.length < SLICE_ROWS) return;
    from = keyAfter(last.key);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
