/** `holdfast clock`: compares the time of the data with the clock of this machine, and sets it back. */
import { resolve } from 'node:path';
import { silentLog } from '../base/log.ts';
import { formatIso7, TICKS_PER_SECOND, ticksFromUnix } from '../base/time.ts';
import { StartError } from '../server/config.ts';
import { readClockLead, readSupportedFormat, writeFormatFile } from '../server/data-directory.ts';
import { openOwnedPartition, openReadOnlyEngine } from '../server/open-partition.ts';
import type { ClockCommand } from './clock-flags.ts';

/** Returns the text to print. */
export async function runClock({ location, setBack, json }: ClockCommand): Promise<string> {
  const folder = resolve(location);
  if (readSupportedFormat(folder) === undefined)
    throw new StartError(`There is no data of Holdfast in ${folder}: name its folder by --location.`);
  const { machine, data } = setBack ? await setTimeBack(folder) : await readTime(folder);
  const seconds = (data - machine) / TICKS_PER_SECOND;
  if (json)
    return JSON.stringify({
      machine: formatIso7(machine),
      data: formatIso7(data),
      aheadSeconds: Number(seconds),
      setBack,
    });
  const ahead = seconds > 0n ? `${formatDuration(seconds)} ahead` : 'not ahead';
  return `this machine's clock  ${formatIso7(machine)}
time of the data      ${formatIso7(data)}, ${ahead}${setBack && seconds > 0n ? ': it is set back by that' : ''}`;
}

interface Times {
  readonly machine: bigint;
  readonly data: bigint;
}

/** Reads only: a server may run on the folder meanwhile. */
async function readTime(folder: string): Promise<Times> {
  const engine = await openReadOnlyEngine(folder);
  try {
    return { machine: ticksFromUnix(Date.now()), data: engine.clock.now() - readClockLead(folder) };
  } finally {
    await engine.close();
  }
}

/** Commit timestamps continue from the highest, so that no ETag repeats; the date that clients see follows the machine's clock. */
async function setTimeBack(folder: string): Promise<Times> {
  const rows = await openOwnedPartition({ location: folder }, silentLog);
  try {
    const [machine, data] = [ticksFromUnix(Date.now()), rows.date()];
    if (data > machine) writeFormatFile(folder, readClockLead(folder) + data - machine);
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

function formatDuration(seconds: bigint): string {
  const [name, length] = UNITS.find(([, each]) => seconds >= 2n * each) ?? ['seconds', 1n];
  return `${seconds / length} ${name}`;
}
