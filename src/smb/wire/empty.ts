/** The bodies without fields: LOGOFF, TREE_DISCONNECT, ECHO and CANCEL, each way (MS-SMB2 2.2.7, 2.2.8, 2.2.11, 2.2.12, 2.2.28 to 2.2.30). */
import { type Of, padding, struct } from './struct.ts';

export const EmptyBody = struct(4, { reserved: padding(2) });
export type EmptyBody = Of<typeof EmptyBody>;
