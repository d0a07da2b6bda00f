/**
 * Append blobs: Put Blob, Append Block and Append Blob Seal. The offset of an append is decided in its commit; appends to one blob wait in one
 * queue and share commits.
 */
import { type AppendConditions, judgeAppend, judgeSeal } from '../../rules/append.ts';
import { type FromUrlInput, withSource } from '../common/copy-sources.ts';
import type { StagedBytes } from '../common/staged-bytes.ts';
import type { Storage } from '../common/storage.ts';
import type { SentContent } from '../common/upload.ts';
import { changeInPlace, findInPlace } from './change-in-place.ts';
import { fail } from './errors.ts';
import { type CreateInPlaceInput, checkInPlaceInput, createInPlace, withBlobBytes } from './in-place-blobs.ts';
import type { BlobInput } from './request-checks.ts';
import type { Blob, ContainerId } from './rows.ts';
import { readTarget } from './write-target.ts';

export function createAppendBlob(storage: Storage, input: CreateInPlaceInput) {
  return createInPlace(storage, input, { length: 0, append: { blocks: 0 } });
}

export interface AppendBlockInput extends BlobInput {
  readonly append: AppendConditions;
  readonly wantsMd5: boolean;
  readonly body: SentContent;
}

/** For Expect: 100-continue: fails as Append Block would, before the body is sent. */
export async function precheckAppendBlock(
  storage: Storage,
  input: Omit<AppendBlockInput, 'wantsMd5' | 'body'>,
): Promise<void> {
  const leaseId = checkInPlaceInput(storage, input);
  await storage.partition.read(async (at) => {
    const target = await readTarget(at, storage, input);
    const blob = findInPlace(at, target.blob, input.conditions, leaseId, 'append');
    checkAppend(blob, input.append, 0);
  });
}

export async function appendBlock(storage: Storage, input: AppendBlockInput) {
  const { length } = input.body;
  const leaseId = checkInPlaceInput(storage, input);
  if (length === 0) throw fail('InvalidHeaderValue', { HeaderName: 'Content-Length', HeaderValue: '0' });
  const end = ({ blob }: { blob: Blob | undefined }) => blob?.length ?? 0;
  return await withBlobBytes(storage, input, end, (bytes, containerId) =>
    commitAppend(storage, input, leaseId, length, bytes, containerId),
  );
}

export type AppendBlockFromUrlInput = Omit<AppendBlockInput, 'body'> & FromUrlInput;

export async function appendBlockFromUrl(storage: Storage, input: AppendBlockFromUrlInput) {
  const leaseId = checkInPlaceInput(storage, input);
  await precheckAppendBlock(storage, input);
  const { containerId, blob } = await storage.partition.read((at) => readTarget(at, storage, input));
  const wanted = { md5: () => input.wantsMd5, inline: true, mapOffset: blob?.length ?? 0 };
  return withSource(storage, input, wanted, async (staged) => {
    const { md5, crc64, length } = staged;
    if (length === 0) throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-source-range' });
    return { written: await commitAppend(storage, input, leaseId, length, staged, containerId), md5, crc64 };
  });
}

/** @param leaseId in its canonical form */
function commitAppend(
  storage: Storage,
  input: BlobInput & { readonly append: AppendConditions },
  leaseId: string | undefined,
  length: number,
  bytes: StagedBytes,
  containerId: ContainerId | undefined,
) {
  return changeInPlace(storage, { input, leaseId, type: 'append', containerId, bytes }, (blob) => {
    const append = checkAppend(blob, input.append, length);
    const blocks = append.blocks + 1;
    const offset = blob.length;
    return {
      record: { length: offset + length, append: { blocks, isSealed: append.isSealed } },
      offset,
      result: { offset, blocks },
    };
  });
}

export type SealInput = BlobInput & { readonly append: Pick<AppendConditions, 'position'> };

/** A blob that is sealed already stays as it is. */
export async function sealBlob(storage: Storage, input: SealInput) {
  const leaseId = checkInPlaceInput(storage, input);
  return changeInPlace(storage, { input, leaseId, type: 'append' }, (blob) => {
    const verdict = judgeSeal(blob, input.append);
    if (verdict !== 'proceed') throw fail(verdict);
    const append = blob.append!;
    return append.isSealed ? { result: {} } : { record: { append: { ...append, isSealed: true } }, result: {} };
  });
}

function checkAppend(blob: Blob, conditions: AppendConditions, length: number) {
  const append = blob.append!;
  const verdict = judgeAppend(
    { length: blob.length, blocks: append.blocks, isSealed: append.isSealed },
    length,
    conditions,
  );
  if (verdict === 'BlockCountExceedsLimit')
    throw fail(verdict, undefined, 'The committed block count cannot exceed the maximum limit of 50,000 blocks.');
  if (verdict !== 'proceed') throw fail(verdict);
  return append;
}
