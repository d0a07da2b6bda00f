/** Applies the plan of a seed. What is there already stays as it is, so a second start with the same seed changes nothing. */
import type { AccountDirectory, KnownAccount } from '../../services/accounts/accounts.ts';
import type { Storage } from '../../services/common/storage.ts';
import type { SeedPlan } from './seed-plan.ts';
import { createOnce, type SeedStep } from './seed-step.ts';

export interface SeedResult {
  readonly created: number;
  readonly unchanged: number;
}

interface SeedTarget {
  readonly accounts: Pick<AccountDirectory, 'find' | 'add'>;
  /** Of this start. */
  firstAccount(): KnownAccount | undefined;
  readonly storageFor: (account: KnownAccount) => Storage;
}

/** Each waits for a sync of its own commit: at the same time they share syncs. */
const STEPS_AT_ONCE = 8;

/** Throws a StartError. */
export async function applySeed(plan: SeedPlan, target: SeedTarget): Promise<SeedResult> {
  let [created, unchanged] = [0, 0];
  const count = (isNew: boolean) => (isNew ? created++ : unchanged++);
  for (const { node, keys } of plan.accounts) {
    if (target.accounts.find(node.name)) count(false);
    else if (!keys) throw node.fault('there is no such account: give it keys, one or two in Base64');
    else count(await createOnce(node, 'AccountAlreadyExists', () => target.accounts.add(node.name, keys)));
  }
  for (const steps of [plan.parents, plan.children]) {
    await forEachAtOnce(steps, async (step) => {
      const storage = storageOf(step, target);
      count(await createOnce(step.node, step.existsCode, () => step.run(storage)));
    });
  }
  return { created, unchanged };
}

function storageOf({ account, node }: SeedStep, { firstAccount, accounts, storageFor }: SeedTarget): Storage {
  const found = account === undefined ? firstAccount() : accounts.find(account);
  if (found) return storageFor(found);
  throw node.fault(account === undefined ? 'there is no account' : `the account ${account} is not served`);
}

/** Some at the same time. After a failure no more are begun, and those that run end before it is thrown. */
async function forEachAtOnce(steps: readonly SeedStep[], run: (step: SeedStep) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async () => {
    try {
      while (next < steps.length) await run(steps[next++]!);
    } catch (error) {
      next = steps.length;
      throw error;
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: STEPS_AT_ONCE }, work));
  const failed = ends.find(({ status }) => status === 'rejected');
  if (failed) throw (failed as PromiseRejectedResult).reason;
}
