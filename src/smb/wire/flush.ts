/** FLUSH (MS-SMB2 2.2.17, 2.2.18). */
import { FileId } from './file-id.ts';
import { type Of, padding, struct } from './struct.ts';

export const FlushRequest = struct(24, { reserved: padding(6), fileId: FileId });
export type FlushRequest = Of<typeof FlushRequest>;

export { EmptyBody as FlushResponse } from './empty.ts';
