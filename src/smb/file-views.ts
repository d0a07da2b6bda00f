/** Files and directories as the wire shows them: FILETIMEs, attributes and sizes. */
import { filetimeFromTicks } from '../base/time.ts';
import type { Node } from '../services/file/node-rows.ts';
import type { DiskTree } from './trees.ts';

const ATTRIBUTE_NORMAL = 0x80;
/** The size of an allocation unit, as the file system information has it. */
export const ALLOCATION_UNIT = 4_096;
const UNIT = BigInt(ALLOCATION_UNIT);

export interface NodeView {
  readonly creationTime: bigint;
  readonly lastAccessTime: bigint;
  readonly lastWriteTime: bigint;
  readonly changeTime: bigint;
  readonly allocationSize: bigint;
  readonly endOfFile: bigint;
  readonly fileAttributes: number;
}

/** @param allocated what a client reserved; space is in fact allocated by writes alone */
export function viewNode(node: Node, allocated = 0n): NodeView {
  const { creation, lastWrite, change, access = lastWrite } = node.times;
  const length = node.kind === 'file' ? node.length : 0;
  return {
    creationTime: filetimeFromTicks(creation),
    lastAccessTime: filetimeFromTicks(access),
    lastWriteTime: filetimeFromTicks(lastWrite),
    changeTime: filetimeFromTicks(change),
    allocationSize: node.kind === 'file' ? roundToUnits(BigInt(length) > allocated ? BigInt(length) : allocated) : 0n,
    endOfFile: BigInt(length),
    fileAttributes: node.attributes === 0 ? ATTRIBUTE_NORMAL : node.attributes,
  };
}

const roundToUnits = (bytes: bigint): bigint => ((bytes + UNIT - 1n) / UNIT) * UNIT;

/** A root has the id of its share: clients take 0 for "no id". */
export function fileIndex(tree: Pick<DiskTree, 'shareId'>, node: Pick<Node, 'id'>): bigint {
  return node.id === 0n ? tree.shareId : node.id;
}

/** Of the file system: the volume of a share. */
export const volumeSerial = ({ shareId }: Pick<DiskTree, 'shareId'>): number => Number(shareId & 0xffff_ffffn);
