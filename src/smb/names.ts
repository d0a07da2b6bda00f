/** Names of files on the wire (MS-SMB2 2.2.13, MS-FSCC 2.1.5): from the root of the share, with backslashes. */
import { formatIso7, parseIso7 } from '../base/time.ts';
import { SmbError } from './statuses.ts';

/** A share snapshot as the first name of a path: what clients that do not know the create context TWrp send. */
const SNAPSHOT_NAME = /^@GMT-(\d{4})\.(\d\d)\.(\d\d)-(\d\d)\.(\d\d)\.(\d\d)$/;

/** @returns the second of the snapshot, in ticks; undefined: the name is none */
export function parseSnapshotName(name: string): bigint | undefined {
  const [, year, month, day, hour, minute, second] = SNAPSHOT_NAME.exec(name) ?? [];
  return year === undefined ? undefined : parseIso7(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

export function formatSnapshotName(second: bigint): string {
  const [date = '', time = ''] = formatIso7(second).slice(0, 19).split('T');
  return `@GMT-${date.replaceAll('-', '.')}-${time.replaceAll(':', '.')}`;
}

/** @returns the path as the services have it */
export function parseFileName(name: string): string {
  if (name.startsWith('\\')) throw new SmbError('INVALID_PARAMETER');
  // A colon names a stream of a file, also the one that every file has. On a share without streams it is no character of names.
  if (name.includes(':')) throw new SmbError('OBJECT_NAME_INVALID');
  // A slash is in no name. Programs that come from other systems write it between names, which Samba understands, too.
  const names = name.split(/[\\/]/);
  if (names.includes('..')) throw new SmbError('OBJECT_PATH_SYNTAX_BAD');
  return names.join('/');
}

export const formatFileName = (names: readonly string[]): string => `\\${names.join('\\')}`;
