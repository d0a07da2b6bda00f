/**
 * What operations of REST are refused while SMB has a file open, written down from Microsoft's pages Manage File Locks and Lease File, and not
 * from the server's own tables. Where these pages differ for Lease File, the refusal counts.
 *
 * Not on these pages: Copy File counts as Get File on its source and as Create File on its destination, Put Range from URL as Put Range,
 * Rename File as an open for Delete; what else is done to directories, and Abort Copy File, counts as nothing.
 */

/** READ, WRITE and DELETE of a share mode. */
export type ShareMode = 'None' | 'R' | 'W' | 'D' | 'RW' | 'RD' | 'WD' | 'RWD';

/** The access that an operation counts as; beside a Delete of Delete File no handle may be open at all. */
// biome-ignore format: a table
export const COUNTS_AS: Readonly<Record<string, string>> = {
  'List Directories and Files': 'none',
  'Get File Properties':        'none',
  'Get File Metadata':          'none',
  'Get File':                   'Read',
  'List Ranges':                'Read',
  'Put Range':                  'Write',
  'Put Range (clear)':          'Write',
  'Put Range From URL':         'Write',
  'Set File Properties':        'Write',
  'Set File Metadata':          'Write',
  'Create File':                'Write, Delete',
  'Copy File':                  'Write, Delete',
  'Rename File':                'Delete',
  'Delete File':                'Delete, and no open handle',
  'Lease File':                 'Write, Delete, sharing Read',
};

/** The operations that a handle with Read access and this share mode refuses with 409 SharingViolation. */
// biome-ignore format: a table
export const SHARING_VIOLATIONS: Readonly<Record<string, readonly ShareMode[]>> = {
  'List Directories and Files': [],
  'Get File Properties':        [],
  'Get File Metadata':          [],
  'Get File':                   ['None', 'W', 'D', 'WD'],
  'List Ranges':                ['None', 'W', 'D', 'WD'],
  'Put Range':                  ['None', 'R', 'D', 'RD'],
  'Put Range (clear)':          ['None', 'R', 'D', 'RD'],
  'Put Range From URL':         ['None', 'R', 'D', 'RD'],
  'Set File Properties':        ['None', 'R', 'D', 'RD'],
  'Set File Metadata':          ['None', 'R', 'D', 'RD'],
  'Create File':                ['None', 'R', 'W', 'D', 'RW', 'RD'],
  'Copy File':                  ['None', 'R', 'W', 'D', 'RW', 'RD'],
  'Rename File':                ['None', 'R', 'W', 'RW'],
  'Delete File':                ['None', 'R', 'W', 'D', 'RW', 'RD', 'WD', 'RWD'],
  'Lease File':                 ['None', 'R', 'W', 'D', 'RW', 'RD', 'WD'],
};

/** Accesses of a handle that shares everything, beside which a lease is acquired. */
export const LEASED_BESIDE: readonly string[] = ['None', 'R'];
/** Accesses with which SMB opens a file that is leased. */
export const OPENED_BESIDE_LEASE: readonly string[] = ['None', 'R'];

/**
 * Operations that a read-only file refuses. Microsoft's page names the first four; a part of Put Range is Put Range, and a copy creates its
 * destination.
 */
export const READ_ONLY_REFUSES: readonly string[] = [
  'Create File',
  'Set File Properties',
  'Set File Metadata',
  'Put Range',
  'Put Range (clear)',
  'Put Range From URL',
  'Copy File',
];
