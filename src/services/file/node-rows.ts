/** Entries and nodes: an entry is a name in a directory, the node that it leads to is the directory or file itself. */
import type { Instant, Timestamp } from '../../partition/partition.ts';
import type { CopyState } from '../../rules/copy-state.ts';
import type { Lease } from '../../rules/lease.ts';
import type { ContentHeaders } from '../common/content-headers.ts';
import type { WithVersion } from '../common/etagged-rows.ts';
import type { Metadata } from '../common/names.ts';
import type { NodeId } from './rows.ts';

export { decodeEntry, decodeNode, encodeEntry, encodeNode, nodeBorn } from './node-codec.ts';

export type NodeKind = 'directory' | 'file';

export interface Entry {
  readonly node: NodeId;
  /** As it was given: names keep their case, and are compared without it. */
  readonly name: string;
  readonly kind: NodeKind;
  /** The generation of the share in which the entry was written. */
  readonly born: number;
}

/** The times that SMB and the headers x-ms-file-*-time show; clients may set them. */
export interface NodeTimes {
  readonly creation: Instant;
  readonly lastWrite: Instant;
  readonly change: Instant;
  /** Only as an SMB client set it; undefined: that of the last write. */
  readonly access?: Instant | undefined;
}

/** What SMB and the headers x-ms-file-* show of a directory or file. */
export interface SmbProperties {
  /** FILE_ATTRIBUTE_* of SMB, as a sum. */
  readonly attributes: number;
  readonly times: NodeTimes;
  /** The hash of the security descriptor, under which the share has it. */
  readonly permission: string;
}

interface NodeRecord extends SmbProperties {
  /** The version that the ETag shows. Set by lease operations and renames above only; any other write leaves it out. */
  readonly etag?: Timestamp;
  /** Of the entry. The root is its own parent, and has no name. */
  readonly parent: NodeId;
  readonly name: string;
  readonly metadata: Metadata;
  /** The generation of the share in which the row was written. */
  readonly born: number;
}

export interface DirectoryRecord extends NodeRecord {
  readonly kind: 'directory';
  /** When the times were set: changes of its entries that are later count, `timesKey`. */
  readonly timesSet: Timestamp;
}

export interface FileRecord extends NodeRecord {
  readonly kind: 'file';
  readonly length: number;
  /** Undefined: nothing was written, all bytes are zeros. */
  readonly contentId?: string | undefined;
  readonly content: ContentHeaders;
  readonly lease?: Lease | undefined;
  readonly copy?: CopyState | undefined;
}

export type Directory = WithVersion<DirectoryRecord> & { readonly id: NodeId };
export type File = WithVersion<FileRecord> & { readonly id: NodeId };
export type Node = Directory | File;

/** The record as it would be written again, under a new ETag. */
export function recordFrom<T extends Node>({ etag: _, modified: __, version: ___, id: ____, ...record }: T) {
  return record as unknown as T extends File ? FileRecord : DirectoryRecord;
}
