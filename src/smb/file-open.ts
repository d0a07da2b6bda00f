/** An open of a file or directory through a tree of a share. */
import type { Storage } from '../services/common/storage.ts';
import type { Pattern } from '../services/file/handle-listing.ts';
import { type HandleView, viewHandle } from '../services/file/handle-properties.ts';
import { closeHandle } from '../services/file/handles.ts';
import type { NodeKind } from '../services/file/node-rows.ts';
import type { Handle } from '../services/file/open-rows.ts';
import { isSnapshotHandle } from '../services/file/snapshot-handles.ts';
import { afterFlush, NO_WRITES, noteCloseAfterWrites, writeShownByClose } from '../services/file/write-times.ts';
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
  written = NO_WRITES;

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

  /** What a change of bytes through this open does to the times. */
  get changedTimes(): { readonly mode: 'now' | 'preserve'; readonly keepsChange: boolean } {
    return { mode: this.keepsLastWrite ? 'preserve' : 'now', keepsChange: this.keepsChange };
  }

  /** @param rights of which the open has one, at least */
  view(rights?: number): Promise<HandleView> {
    return viewHandle(this.storage, this.handle, rights, this.written);
  }

  /** Before the close: what it shows of the writes. */
  async showWrites(): Promise<void> {
    const stored = writeShownByClose(this.written);
    this.written = afterFlush(this.written);
    if (stored === undefined) return;
    await noteCloseAfterWrites(this.storage, this.handle, { stored, keepsChange: this.keepsChange });
  }

  async close(): Promise<void> {
    if (this.isPreviousVersion) return;
    // The open ends, even if its share is gone.
    await this.showWrites().catch(() => undefined);
    await closeHandle(this.storage, this.handle);
  }
}
