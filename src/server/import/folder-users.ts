/**
 * Processes that use a folder of Azurite, which takes no lock: one that has a file of it open for writing, and an Azurite that was started for
 * it and has not written yet. Found where there is /proc, for processes that this user may look at.
 */
import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { resolve, sep } from 'node:path';

/** @param folder without symbolic links @returns the id of one */
export function findFolderUser(folder: string): number | undefined {
  const ids = entries('/proc').map(Number).filter(Number.isInteger);
  return ids.find((id) => id !== process.pid && (writesInto(id, folder) || isAzuriteOf(id, folder)));
}

function writesInto(id: number, folder: string): boolean {
  return entries(`/proc/${id}/fd`).some((file) => {
    if (!read(() => readlinkSync(`/proc/${id}/fd/${file}`)).startsWith(folder + sep)) return false;
    const [, flags = '0'] =
      /^flags:\s*(\d+)/m.exec(read(() => readFileSync(`/proc/${id}/fdinfo/${file}`, 'utf8'))) ?? [];
    return (Number.parseInt(flags, 8) & 3) !== 0;
  });
}

/** By its command line: `node .../azurite [--location folder]`; without the flag it uses the folder in which it was started. */
function isAzuriteOf(id: number, folder: string): boolean {
  const startedIn = read(() => readlinkSync(`/proc/${id}/cwd`));
  if (startedIn === '') return false;
  const [, script = '', ...words] = read(() => readFileSync(`/proc/${id}/cmdline`, 'utf8')).split('\0');
  // Holdfast has a program of that name, too.
  const isAzurite = read(() => realpathSync(resolve(startedIn, script))).includes('/azurite/dist/src/');
  const place = words.findIndex((word) => /^(-l|--location)(=|$)/.test(word));
  const [, assigned = words[place + 1]] = words[place]?.split('=') ?? [];
  return isAzurite && resolve(startedIn, place < 0 ? '.' : (assigned ?? '.')) === folder;
}

function entries(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Empty if the process has ended, or belongs to another user. */
function read(text: () => string): string {
  try {
    return text();
  } catch {
    return '';
  }
}
