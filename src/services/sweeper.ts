/** Gives back the rows of what was deleted in O(1), in slices, beside everything else. It remembers nothing: the trash does. */
import { setTimeout as pause } from 'node:timers/promises';
import { decodeKey, past } from '../partition/keys.ts';
import type { Partition, Row } from '../partition/partition.ts';
import { headsIn, inlineKey, nameIn, trashIn } from './blob/rows.ts';
import type { AccountId } from './storage.ts';

export interface Sweeper {
  wake(): void;
  /** Resolves once there is no trash left. */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

/** Blobs a slice; each leaves two rows. */
const SLICE_BLOBS = 100;
/** The pause between slices, in lengths of the slice before: the disk belongs to the requests. */
const REST = 2;
const RETRY_MILLISECONDS = 5_000;

export function startSweeper(
  partition: Partition,
  accounts: Iterable<AccountId>,
  onFailure: (error: unknown) => void = () => {},
): Sweeper {
  const ids = [...accounts];
  let running: Promise<void> | undefined;
  let again = false;
  const stopping = new AbortController();

  async function run(): Promise<void> {
    while (again && !stopping.signal.aborted) {
      again = false;
      try {
        for (const account of ids) await sweepAccount(account);
      } catch (error) {
        if (stopping.signal.aborted) return;
        onFailure(error);
        again = true;
        await rest(RETRY_MILLISECONDS);
      }
    }
  }

  async function sweepAccount(account: AccountId): Promise<void> {
    for (;;) {
      const [trash] = await partition.read((at) => at.scan(trashIn(account), { limit: 1 }));
      if (!trash) return;
      for (;;) {
        if (stopping.signal.aborted) return;
        const started = performance.now();
        if (await sweepContainer(partition, account, trash)) break;
        await rest(REST * (performance.now() - started));
      }
    }
  }

  async function rest(milliseconds: number): Promise<void> {
    await pause(milliseconds, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
  }

  return {
    wake() {
      again = true;
      running ??= run().finally(() => {
        running = undefined;
        if (again && !stopping.signal.aborted) this.wake();
      });
    },
    async idle() {
      while (running) await running;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** One slice; true once nothing is left. The container's name is gone, so nobody adds to it: a look at its rows is enough. */
async function sweepContainer(partition: Partition, account: AccountId, trash: Row): Promise<boolean> {
  const id = decodeKey(trash.key).at(-1) as bigint;
  const heads = headsIn(account, id, '');
  const { value } = await partition.transact(trash.key, async (tx) => {
    const rows = await tx.glance({ from: heads, to: past(heads) }, { limit: SLICE_BLOBS });
    for (const { key } of rows) {
      tx.remove(key);
      tx.remove(inlineKey(account, id, nameIn(key)));
    }
    if (rows.length === 0) tx.remove(trash.key);
    return rows.length === 0;
  });
  return value;
}
