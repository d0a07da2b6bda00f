/** The claim of this process to its volatile rows: made at the start, verified with every heartbeat, made again after a loss. */
import type { Partition } from '../../partition/partition.ts';
import { checkEpoch } from './epochs.ts';
import { type OwnerClaim, OwnerLost, ownerKey, putOwner } from './owner-rows.ts';

/** After a loss, what rests on the claim is dropped first, and then another claim is made. */
export class Owner {
  readonly epoch: bigint;
  private readonly partition: Partition;
  /** Undefined from a loss to the next claim. */
  private current: OwnerClaim | undefined;
  private claiming: Promise<void> | undefined;
  private isEnded = false;
  private readonly listeners = new Set<(claim: OwnerClaim) => void>();

  static async claim(partition: Partition, epoch: bigint): Promise<Owner> {
    return new Owner(partition, await claimOwner(partition, epoch));
  }

  private constructor(partition: Partition, claim: OwnerClaim) {
    this.partition = partition;
    this.epoch = claim.epoch;
    this.current = claim;
  }

  /** For a new open: it rests on this claim for as long as it lives. */
  get claim(): OwnerClaim {
    if (!this.current) throw new OwnerLost();
    return this.current;
  }

  /** @param listener drops all that rests on the claim; called once for each claim that ends */
  onLost(listener: (claim: OwnerClaim) => void): void {
    this.listeners.add(listener);
  }

  /** A commit that rested on this claim met OwnerLost. */
  async lose(claim: OwnerClaim): Promise<void> {
    if (this.current?.version === claim.version) this.drop();
    if (!this.current && !this.isEnded) await this.claimAgain();
  }

  /** For each heartbeat: a process that does nothing notices a loss, too. */
  async verify(): Promise<void> {
    const { current } = this;
    if (!current) return this.isEnded ? undefined : this.claimAgain();
    const row = await this.partition.read((at) => at.get(ownerKey(this.epoch)));
    if (row?.version !== current.version) await this.lose(current);
  }

  /** The process was evicted, or leaves. */
  end(): void {
    this.isEnded = true;
    if (this.current) this.drop();
  }

  private drop(): void {
    const { claim } = this;
    this.current = undefined;
    for (const listener of this.listeners) listener(claim);
  }

  private claimAgain(): Promise<void> {
    this.claiming ??= claimOwner(this.partition, this.epoch)
      .then((claim) => {
        if (!this.isEnded) this.current = claim;
      })
      .finally(() => {
        this.claiming = undefined;
      });
    return this.claiming;
  }
}

async function claimOwner(partition: Partition, epoch: bigint): Promise<OwnerClaim> {
  const { timestamp: version } = await partition.transact(ownerKey(epoch), async (tx) => {
    await checkEpoch(tx, epoch);
    putOwner(tx, epoch);
  });
  return { epoch, version };
}
