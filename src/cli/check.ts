/** `holdfast check`: verifies all rows and bytes, and prints what is wrong with them. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { StartError, type Where } from '../server/public.ts';
import { progressBar } from './progress-bar.ts';

/** Sets the exit code to 1 if there are findings. */
export async function runCheck(where: Where): Promise<void> {
  const isFolder = typeof where === 'string';
  const folder = resolve(isFolder ? where : where.extents);
  if (!existsSync(folder))
    throw new StartError(`There is no folder ${folder}: name the data by --${isFolder ? 'location' : 'extents'}.`);
  const { check } = await import('../index.ts');
  const bar = progressBar(process.stderr);
  const { notes, findings } = await check(isFolder ? folder : { ...where, extents: folder }, bar.show).finally(
    bar.clear,
  );
  for (const line of [...notes, ...findings]) console.log(line);
  console.log(findings.length === 0 ? 'Everything is in order.' : `${findings.length} findings.`);
  process.exitCode = findings.length === 0 ? 0 : 1;
}
