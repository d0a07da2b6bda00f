/** The parts of a seed that are applied: each creates one thing if there is none, and leaves what is there as it is. */
import { asStorageError } from '../../services/common/errors.ts';
import type { Storage } from '../../services/common/storage.ts';
import type { SeedNode } from './seed-node.ts';

export interface SeedStep {
  readonly node: SeedNode;
  /** Undefined: the first account. */
  readonly account: string | undefined;
  /** Fails with `existsCode` if there is one, or returns 'unchanged'. */
  run(storage: Storage): Promise<unknown>;
  readonly existsCode: string;
}

/** One list after the other; the steps of a list do not depend on each other. */
export interface SeedSteps {
  /** Containers, queues with their messages, tables and shares. */
  readonly parents: SeedStep[];
  /** Blobs, entities and files. */
  readonly children: SeedStep[];
}

export interface SeedScope extends Pick<SeedStep, 'account'> {
  /** Paths are relative to it. */
  readonly folder: string;
  readonly steps: SeedSteps;
}

/** Whether it has created something. Throws a StartError. */
export async function createOnce(node: SeedNode, existsCode: string, create: () => Promise<unknown>): Promise<boolean> {
  try {
    return (await create()) !== 'unchanged';
  } catch (error) {
    if (asStorageError(error)?.code === existsCode) return false;
    throw withPlace(node, error);
  }
}

/** The refusal of a service or of the file system with its place in the seed. */
export function withPlace(node: SeedNode, error: unknown): unknown {
  const { code, message } = asStorageError(error) ?? (error as NodeJS.ErrnoException);
  return code === undefined ? error : node.fault(`${code}, ${message.replace(/\.$/, '')}`);
}
