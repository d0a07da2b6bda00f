/** holdfast clock */
import { resolve } from 'node:path';
import { silent } from '../base/log.ts';
import { iso7, TICKS_PER_SECOND, ticksOf } from '../base/time.ts';
import { StartError } from '../server/config.ts';
import { formatOf, leadOf, writeDescription } from '../server/data-directory.ts';
import { openRows, readRows } from '../server/open-partition.ts';
import type { ClockCommand } from './clock-flags.ts';

/** What is to be printed. */
export async function runClock({ location, setBack, json }: ClockCommand): Promise<string> {
  const folder = resolve(location);
  if (formatOf(folder) === undefined)
    throw new StartError(`There is no data of Holdfast in ${folder}: name its folder by --location.`);
  const { machine, data } = setBack ? await setTimeBack(folder) : await readTime(folder);
  const seconds = (data - machine) / TICKS_PER_SECOND;
  if (json) return JSON.stringify({ machine: iso7(machine), data: iso7(data), aheadSeconds: Number(seconds), setBack });
  const ahead = seconds > 0n ? `${durationText(seconds)} ahead` : 'not ahead';
  return `this machine's clock  ${iso7(machine)}
time of the data      ${iso7(data)}, ${ahead}${setBack && seconds > 0n ? ': it is set back by that' : ''}`;
}

interface Times {
  readonly machine: bigint;
  readonly data: bigint;
}

/** A server may work on the folder meanwhile. */
async function readTime(folder: string): Promise<Times> {
  const engine = await readRows(folder);
  try {
    return { machine: ticksOf(Date.now()), data: engine.clock.now() - leadOf(folder) };
  } finally {
    await engine.close();
  }
}

/** The stamps of the store go on from the highest, so that no ETag comes twice; what is called its date follows the machine's clock. */
async function setTimeBack(folder: string): Promise<Times> {
  const rows = await openRows({ location: folder }, silent);
  try {
    const [machine, data] = [ticksOf(Date.now()), rows.date()];
    if (data > machine) writeDescription(folder, leadOf(folder) + data - machine);
    return { machine, data };
  } finally {
    await rows.close();
  }
}

const UNITS = [
  ['days', 86_400n],
  ['hours', 3_600n],
  ['minutes', 60n],
] as const;

function durationText(seconds: bigint): string {
  const [name, length] = UNITS.find(([, each]) => seconds >= 2n * each) ?? ['seconds', 1n];
  return `${seconds / length} ${name}`;
}
