/** An open of a file or directory through a tree of a share. */
import type { Storage } from '../services/common/storage.ts';
import type { Pattern } from '../services/file/handle-listing.ts';
import { closeHandle } from '../services/file/handles.ts';
import type { NodeKind } from '../services/file/node-rows.ts';
import type { Handle } from '../services/file/open-rows.ts';
import { isSnapshotHandle } from '../services/file/snapshot-handles.ts';
import type { OpenBase } from './opens.ts';
import type { DiskTree } from './trees.ts';
import type { FileId } from './wire/file-id.ts';

/** Where QUERY_DIRECTORY goes on. */
export interface DirectorySearch {
  readonly pattern: Pattern;
  /** The last entry that was sent; undefined: none. */
  readonly after: string | undefined;
  /** Of `.` and `..`, how many were sent or skipped. */
  readonly dotsSent: number;
  readonly hasFound: boolean;
}

export interface FileOpenOptions {
  readonly fileId: FileId;
  readonly tree: DiskTree;
  readonly storage: Storage;
  readonly handle: Handle;
  readonly nodeKind: NodeKind;
  /** The granted access mask. */
  readonly rights: number;
  /** FILE_MODE_INFORMATION: the create options that it shows. */
  readonly mode: number;
}

export class FileOpen implements OpenBase<DiskTree> {
  readonly kind = 'disk';
  readonly fileId: FileId;
  readonly tree: DiskTree;
  /** Of the account, limited to the share that the tree was connected to. */
  readonly storage: Storage;
  readonly handle: Handle;
  readonly nodeKind: NodeKind;
  readonly rights: number;
  mode: number;
  position = 0n;
  search: DirectorySearch | undefined;
  /** Bytes that the client reserved by this open: shown to it, and not more. */
  allocation = 0n;
  /** After a client has set the time of the last write or change itself, operations through this open leave it alone. */
  keepsLastWrite = false;
  keepsChange = false;

  constructor({ fileId, tree, storage, handle, nodeKind, rights, mode }: FileOpenOptions) {
    this.fileId = fileId;
    this.tree = tree;
    this.storage = storage;
    this.handle = handle;
    this.nodeKind = nodeKind;
    this.rights = rights;
    this.mode = mode;
  }

  /** What a share snapshot shows: it cannot be changed. */
  get isPreviousVersion(): boolean {
    return isSnapshotHandle(this.handle);
  }

  get lastWriteMode(): 'now' | 'preserve' {
    return this.keepsLastWrite ? 'preserve' : 'now';
  }

  async close(): Promise<void> {
    if (!this.isPreviousVersion) await closeHandle(this.storage, this.handle);
  }
}
