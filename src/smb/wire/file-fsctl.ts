/** Inputs and outputs of FSCTLs on files: copies by the server (MS-SMB2 2.2.31.1, 2.2.32.1, 2.2.32.3), zeros and allocated ranges (MS-FSCC 2.3). */
import { Reader, WireError } from './reader.ts';
import { bytes, padding, record, trailing, u32, u64 } from './struct.ts';

export const ResumeKeyResponse = record({ resumeKey: bytes(24), contextLength: padding(4), context: padding(4) });

export const SRV_COPYCHUNK = record({ sourceOffset: u64, targetOffset: u64, length: u32, reserved: padding(4) });

const CopyChunkHead = record({ sourceKey: bytes(24), chunkCount: u32, reserved: padding(4) });

export interface CopyChunk {
  readonly sourceOffset: bigint;
  readonly targetOffset: bigint;
  readonly length: number;
}

/** A longer list is an answer with the limits, which is the handler's. */
const CHUNKS_READ_MAX = 1_024;

export function readCopyChunks(input: Buffer): {
  readonly sourceKey: Buffer;
  readonly chunkCount: number;
  readonly chunks: readonly CopyChunk[];
} {
  const reader = new Reader(input);
  const { sourceKey, chunkCount } = CopyChunkHead.read(reader, CopyChunkHead.size);
  if (chunkCount * SRV_COPYCHUNK.size > reader.remaining) throw new WireError('chunks of a copy are cut off');
  const chunks: CopyChunk[] = [];
  for (let i = 0; i < Math.min(chunkCount, CHUNKS_READ_MAX); i++)
    chunks.push(SRV_COPYCHUNK.read(reader, reader.position + SRV_COPYCHUNK.size));
  return { sourceKey, chunkCount, chunks };
}

export const CopyChunkResponse = record({ chunksWritten: u32, chunkBytesWritten: u32, totalBytesWritten: u32 });

export const FileZeroDataInformation = record({ fileOffset: u64, beyondFinalZero: u64 });

export const FileAllocatedRange = record({ fileOffset: u64, length: u64 });

/** MS-SMB2 2.2.32.2: the names follow, each with a zero at its end, and one more. */
export const SnapshotArray = record({ numberOfSnapshots: u32, numberReturned: u32, names: trailing(4) });
