/** What only tests do to a running server: empty it, and move its clock. */
import type { Partition } from '../partition/partition.ts';
import type { AccountDirectory, KnownAccount } from '../services/accounts/accounts.ts';
import type { Analytics } from '../services/analytics/analytics.ts';
import { commonErrors, errorFactory } from '../services/common/errors.ts';
import type { Storage } from '../services/common/storage.ts';
import { emptyAccount } from '../services/maintenance/reset.ts';

const fail = errorFactory(commonErrors);

export interface TestControls {
  /** Removes all containers, queues, tables and settings. */
  reset(): Promise<void>;
  /** Moves the server's time forward. */
  advance(seconds: number): Promise<void>;
}

interface TestControlsOptions {
  /** Only a server in memory or with a test clock obeys. */
  readonly allowed: boolean;
  readonly partition: Partition;
  readonly accounts: Pick<AccountDirectory, 'list'>;
  readonly sweeper: Storage['sweeper'];
  readonly analytics: Pick<Analytics, 'reset' | 'settle'>;
  readonly storageFor: (account: KnownAccount) => Storage;
}

export function createTestControls(options: TestControlsOptions): TestControls {
  const { allowed, partition, accounts, sweeper, analytics, storageFor } = options;
  return {
    async reset() {
      if (!allowed) throw testControlsRefused('Emptying the server');
      for (const account of accounts.list()) await emptyAccount(storageFor(account));
      await analytics.reset();
    },
    async advance(seconds) {
      if (!allowed) throw testControlsRefused('Moving the clock');
      if (!(seconds >= 0) || seconds > 1e9)
        throw fail('OutOfRangeInput', undefined, 'seconds must be a number from 0 to 1e9.');
      await partition.clock.advance(BigInt(Math.round(seconds * 1e7)));
      // Leases, messages and uncommitted blocks may have expired.
      sweeper.wake();
      await analytics.settle();
    },
  };
}

function testControlsRefused(what: string) {
  return fail(
    'AuthorizationFailure',
    undefined,
    `${what} needs a server that was started with --test-clock or in memory.`,
  );
}
