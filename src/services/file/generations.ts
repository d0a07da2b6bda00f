/**
 * Generations of a share and of its contents. A snapshot holds the generation of the share that it ends, with one row for all contents; a row is
 * kept for snapshots if a generation in which it was current is held.
 */
import {
  type GroupPlace,
  groupGenerations,
  groupHeldIn,
  groupHeldKey,
  holdGroup,
  isGroupHeld,
  releaseGroup,
} from '../../content/ranges/groups.ts';
import type { Key, Range } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import type { Share, ShareKeys } from './rows.ts';

/**
 * Generations of a content between two of its share: a long read of a file begins another one of its content, without a change of the share.
 * So a generation of the share and the number of long reads in it are one number, in order.
 */
const GENERATIONS_OF_READS = 2 ** 31;

/** Generations of a share: a content's must be exact as a number. */
export const GENERATIONS_MAX = 2 ** 22 - 1;

/** Snapshots of a share, and those that are deleted and not yet swept. */
const HELD_MAX = 10_000;

/** The last generation of the contents in this one of the share: what a snapshot shows. */
export const contentGeneration = (gen: number): number => gen * GENERATIONS_OF_READS;

/** The generation of the share in which this one of a content is. */
export const shareGeneration = (gen: number): number => Math.ceil(gen / GENERATIONS_OF_READS);

/** Where a write to a content of the share belongs. */
export const contentPlace = ({ id, gen }: Pick<Share, 'id' | 'gen'>): GroupPlace => ({
  group: id.toString(),
  gen: contentGeneration(gen - 1) + 1,
});

const groupOf = ({ id }: ShareKeys): string => id.toString();

export const heldGenerationKey = (share: ShareKeys, gen: number): Key =>
  groupHeldKey(share.account, groupOf(share), contentGeneration(gen));

export const heldGenerationsIn = (share: ShareKeys): Range => groupHeldIn(share.account, groupOf(share));

export function holdShareGeneration(tx: Transaction, share: ShareKeys, gen: number): void {
  holdGroup(tx, share.account, groupOf(share), contentGeneration(gen));
}

export function releaseShareGeneration(tx: Transaction, share: ShareKeys, gen: number): void {
  releaseGroup(tx, share.account, groupOf(share), contentGeneration(gen));
}

/** Whether a generation of the share from `born` to before `died` is held. */
export function isGenerationHeld(at: Snapshot, share: ShareKeys, born: number, died: number): Promise<boolean> {
  return isGroupHeld(at, share.account, groupOf(share), contentGeneration(born), contentGeneration(died));
}

/** In order; in a transaction they are not checked. */
export async function heldGenerations(at: Snapshot | Transaction, share: ShareKeys): Promise<number[]> {
  const reader = 'scanUnchecked' in at ? { scan: at.scanUnchecked.bind(at) } : at;
  const held = await groupGenerations(reader, share.account, groupOf(share), HELD_MAX);
  return held.map((gen) => gen / GENERATIONS_OF_READS);
}
