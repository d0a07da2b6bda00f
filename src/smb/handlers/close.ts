/** CLOSE (MS-SMB2 3.3.5.10). */
import type { OpenContext } from '../command.ts';
import type { FileOpen } from '../file-open.ts';
import { type NodeView, viewNode } from '../file-views.ts';
import { CLOSE_POSTQUERY_ATTRIB, type CloseRequest, type CloseResponse } from '../wire/close.ts';

const NOTHING: NodeView = {
  creationTime: 0n,
  lastAccessTime: 0n,
  lastWriteTime: 0n,
  changeTime: 0n,
  allocationSize: 0n,
  endOfFile: 0n,
  fileAttributes: 0,
};

export async function close({ flags }: CloseRequest, { open, session }: OpenContext): Promise<CloseResponse> {
  const view = flags & CLOSE_POSTQUERY_ATTRIB ? await viewIfOpen(open) : undefined;
  await session.opens.close(open);
  return { flags: view ? CLOSE_POSTQUERY_ATTRIB : 0, ...(view ?? NOTHING) };
}

/** Undefined: another client has closed the handle, or its share is gone. That is no reason to keep the open. */
async function viewIfOpen(open: FileOpen): Promise<NodeView | undefined> {
  try {
    await open.showWrites();
    return viewNode((await open.view()).node);
  } catch {
    return undefined;
  }
}
