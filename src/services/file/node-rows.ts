/** Entries and nodes: an entry is a name in a directory, the node that it leads to is the directory or file itself. */
import type { Instant, Row, Timestamp } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import type { CopyState } from '../../rules/copy-state.ts';
import type { Lease } from '../../rules/lease.ts';
import type { ContentHeaders } from '../common/content-headers.ts';
import { decodeLease, encodeLease, type StoredLease, versionFields, type WithVersion } from '../common/etagged-rows.ts';
import type { Metadata } from '../common/names.ts';
import type { NodeId } from './rows.ts';

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

export function encodeEntry({ node, name, kind, born }: Entry): Buffer {
  return encodeValue({ node: node.toString(), name, kind, born });
}

export function decodeEntry(row: Row): Entry {
  const { node, ...entry } = decodeValue<Omit<Entry, 'node'> & { node: string }>(row);
  return { ...entry, node: BigInt(node) };
}

export function encodeNode(record: DirectoryRecord | FileRecord): Buffer {
  const { etag, parent, times } = record;
  const common = {
    etag: etag?.toString(),
    parent: parent.toString(),
    times: [times.creation.toString(), times.lastWrite.toString(), times.change.toString()],
  };
  if (record.kind === 'directory') return encodeValue({ ...record, ...common, timesSet: record.timesSet.toString() });
  const copy = record.copy && { ...record.copy, completed: record.copy.completed?.toString() };
  return encodeValue({ ...record, ...common, lease: encodeLease(record.lease), copy });
}

export function decodeNode(id: NodeId, row: Row): Node {
  const { etag, lease, copy, timesSet, ...stored } = decodeValue<StoredNode>(row);
  const [creation, lastWrite, change] = stored.times;
  const common = {
    ...stored,
    id,
    parent: BigInt(stored.parent),
    times: { creation: BigInt(creation), lastWrite: BigInt(lastWrite), change: BigInt(change) },
    ...versionFields(row, etag),
  };
  if (stored.kind === 'directory') return { ...common, timesSet: BigInt(timesSet!) } as Directory;
  return { ...common, lease: decodeLease(lease), copy: copy && decodeCopy(copy) } as File;
}

/** The record as it would be written again, under a new ETag. */
export function recordFrom<T extends Node>({ etag: _, modified: __, version: ___, id: ____, ...record }: T) {
  return record as unknown as T extends File ? FileRecord : DirectoryRecord;
}

type StoredCopyState = Omit<CopyState, 'completed'> & { completed?: string };

const decodeCopy = ({ completed, ...copy }: StoredCopyState): CopyState =>
  completed === undefined ? copy : { ...copy, completed: BigInt(completed) };

interface StoredNode {
  readonly kind: NodeKind;
  readonly etag?: string;
  readonly parent: string;
  readonly times: readonly [creation: string, lastWrite: string, change: string];
  readonly timesSet?: string;
  readonly lease?: StoredLease;
  readonly copy?: StoredCopyState;
}
