/** The one commit that changes bytes of a file, whether the file is found by its path or through a handle. */
import type { ContentId } from '../../content/rows.ts';
import type { Key } from '../../partition/keys.ts';
import type { Transaction } from '../../partition/partition.ts';
import type { LastWriteMode } from '../../rules/file/ranges.ts';
import type { LastWriteChange } from '../../rules/file/write-times.ts';
import { leaseAfterWrite } from '../../rules/lease.ts';
import type { Storage } from '../common/storage.ts';
import type { BytesChanged } from './file-content.ts';
import { type FoundFile, updateNode } from './namespace.ts';
import type { File, NodeTimes } from './node-rows.ts';

/** What a change of bytes does to the times. */
export interface ByteChangeTimes {
  readonly mode: LastWriteMode;
  /** The client has set the change time itself. */
  readonly keepsChange?: boolean;
}

export type ShareAndFile = Pick<FoundFile, 'share' | 'node'>;

/**
 * @param newId of the content, if this is the first write
 * @returns undefined: nothing changes, not even a time
 */
export type ByteChange<Found extends ShareAndFile = ShareAndFile> = (
  tx: Transaction,
  found: Found,
  newId: ContentId,
) => Promise<BytesChanged | undefined>;

/**
 * @param changed undefined: no time is changed
 * @param find finds the file and checks that it may be written
 */
export async function changeFileBytes<Found extends ShareAndFile>(
  storage: Storage,
  queueKey: Key,
  changed: ByteChangeTimes | undefined,
  change: ByteChange<Found>,
  find: (tx: Transaction) => Promise<Found>,
): Promise<{ readonly file: File; readonly lastWrite: LastWriteChange }> {
  const { account, content, partition, sweeper } = storage;
  const newId = content.newId();
  const { value } = await content.ranges.withRoom(account, () =>
    partition.transact(queueKey, async (tx) => {
      const found = await find(tx);
      const { share, node } = found;
      const before = node.times.lastWrite;
      const bytes = await change(tx, found, newId);
      if (!bytes) return { file: node, before, needsSweep: false };
      const { record, needsSweep } = bytes;
      const lease = leaseAfterWrite(node.lease, tx.now);
      // The state of a copy ends with the first change.
      const next = { ...record, lease, copy: undefined, times: timesAfterWrite(tx, node, changed) };
      return { file: await updateNode(tx, share, node, next), before, needsSweep };
    }),
  );
  const { file, before, needsSweep } = value;
  if (needsSweep) sweeper.wake();
  return { file, lastWrite: { before, stored: file.times.lastWrite } };
}

function timesAfterWrite({ now }: Transaction, { times }: File, changed: ByteChangeTimes | undefined): NodeTimes {
  if (!changed) return times;
  return { ...times, ...(!changed.keepsChange && { change: now }), ...(changed.mode === 'now' && { lastWrite: now }) };
}
