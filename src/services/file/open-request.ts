/** The words of an open, for front ends that translate a request into one. */
export { grantRights } from '../../rules/file/access-mask.ts';
export type { Disposition } from '../../rules/file/dispositions.ts';

/** The attributes that a client can set: read-only, hidden, system, archive, temporary, offline, not indexed, no scrub. */
export const STORED_ATTRIBUTES = 0x1 | 0x2 | 0x4 | 0x20 | 0x100 | 0x1000 | 0x2000 | 0x2_0000;
