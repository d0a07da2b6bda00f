/** How many files and connections this process may have open, and the share of connections in it. */
import { readFileSync } from 'node:fs';

/** Undefined: there is no limit, or it is not known. Node has raised the soft limit to the hard one by now. */
export function openFilesMax(limits = readLimits()): number | undefined {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  return soft === undefined ? undefined : Number(soft);
}

/** Linux tells it in a file; elsewhere the default limits are far above what one machine's tests need. */
function readLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}

const CONNECTIONS_MAX = 10_000;
/** For extents, the log, LMDB and modules. */
const FILES_RESERVED = 512;

/** A connection that is accepted with the last descriptor would leave none for the data that it asks for. */
export function defaultConnectionsMax(filesMax = openFilesMax()): number {
  if (filesMax === undefined) return CONNECTIONS_MAX;
  return Math.min(CONNECTIONS_MAX, Math.floor(Math.max(filesMax - FILES_RESERVED, filesMax / 2)));
}
