/** Share modes: which opens of a file can stand together, and which operation of REST can run beside them. MS-FSA 2.1.5.1.2.2 */

/** Bits of an access and of a share mode; in a share mode they are FILE_SHARE_READ, FILE_SHARE_WRITE and FILE_SHARE_DELETE. */
export const READ = 0x1;
export const WRITE = 0x2;
export const DELETE = 0x4;
export const ALL = READ | WRITE | DELETE;

/** An open of a file or directory: what it does, and what it allows others to do meanwhile. */
export interface Open {
  readonly access: number;
  readonly share: number;
}

/** Two opens can stand together if each allows all that the other does. One that reads or sets attributes alone does not take part. */
export function compatible(one: Open, other: Open): boolean {
  if (one.access === 0 || other.access === 0) return true;
  return (one.access & ~other.share) === 0 && (other.access & ~one.share) === 0;
}

// Bits of an access mask, MS-SMB2 2.2.13.1.
const READS = 0x1 | 0x20;
const WRITES = 0x2 | 0x4;
export const DELETE_RIGHT = 0x1_0000;

/** The access that an access mask counts as, with all generic rights resolved. */
export function accessFrom(rights: number): number {
  return (rights & READS ? READ : 0) | (rights & WRITES ? WRITE : 0) | (rights & DELETE_RIGHT ? DELETE : 0);
}

/** How an operation of REST uses a file or directory: what it counts as beside opens of SMB. */
export type SmbAccess = 'none' | 'read' | 'write' | 'replace' | 'rename' | 'delete' | 'lease';

interface RestAccess {
  readonly access: number;
  /** No handle may be open, whatever it shares. */
  readonly needsNoOpens?: true;
  /** Each open must share everything, and do nothing but read: the lease excludes all other accesses while it is held. */
  readonly needsReaders?: true;
  /** In docs/operations.md. */
  readonly text: string;
}

const REST_ACCESS: Readonly<Record<SmbAccess, RestAccess>> = {
  none: { access: 0, text: 'none' },
  read: { access: READ, text: 'Read' },
  write: { access: WRITE, text: 'Write' },
  replace: { access: WRITE | DELETE, text: 'Write, Delete' },
  rename: { access: DELETE, text: 'Delete' },
  delete: { access: DELETE, needsNoOpens: true, text: 'Delete, and no open handle' },
  lease: { access: WRITE | DELETE, needsReaders: true, text: 'Write, Delete, sharing Read' },
};

export const formatSmbAccess = (access: SmbAccess): string => REST_ACCESS[access].text;

/** An operation of REST is an open that ends at once, and shares everything. */
export function judgeOperation(operation: SmbAccess, opens: Iterable<Open>): 'proceed' | 'SharingViolation' {
  const { access, needsNoOpens, needsReaders } = REST_ACCESS[operation];
  for (const open of opens) {
    if (needsNoOpens || !compatible({ access, share: ALL }, open)) return 'SharingViolation';
    if (needsReaders && open.access !== 0 && (open.access & ~READ || open.share !== ALL)) return 'SharingViolation';
  }
  return 'proceed';
}

/** Whether the lease that REST holds on a file excludes an open: it lets others read, whatever they share. */
export function isExcludedByLease({ access }: Pick<Open, 'access'>): boolean {
  return (access & (WRITE | DELETE)) !== 0;
}
