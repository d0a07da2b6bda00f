/** The library: what `import { start } from 'holdfast'` gives. Most modules are loaded while the rows are being opened. */
import { type Log, openLog } from './base/log.ts';
import { type Config, resolveConfig } from './server/config.ts';
import { openOwnedPartition } from './server/open-partition.ts';
import {
  type CheckProgress,
  type CheckResult,
  type HoldfastServer,
  StartError,
  type StartOptions,
  type Where,
} from './server/public.ts';
import type * as seeds from './server/seed/seed-plan.ts';
import { readCertificate } from './server/tls/certificate.ts';

export * from './server/public.ts';

/** Starts a server in this process. */
export async function start(options: StartOptions = {}): Promise<HoldfastServer> {
  const config = resolveConfig(options);
  const log = openConfiguredLog(config);
  const givenCertificate = typeof config.https === 'object' ? readCertificate(config.https, new Date()) : undefined;
  const seed = config.seed === undefined ? undefined : await planSeed(config.seed);
  const [rows, { composeServer }] = await Promise.all([openOwnedPartition(config, log), import('./server/compose.ts')]);
  return composeServer({ config, log, rows, givenCertificate, seed });
}

/** Reads and verifies all rows and bytes; servers may write meanwhile. */
export async function check(where: Where, onProgress?: (progress: CheckProgress) => void): Promise<CheckResult> {
  return (await import('./server/open-storage.ts')).check(where, onProgress);
}

/** Loaded on demand: most servers have no seed. */
const planSeed: typeof seeds.planSeed = async (...args) =>
  (await import('./server/seed/seed-plan.ts')).planSeed(...args);

function openConfiguredLog({ log }: Config): Log {
  try {
    return openLog(log);
  } catch (error) {
    throw new StartError(
      `Cannot write the log ${log.file} (${(error as Error).message}): choose another file by --debug.`,
    );
  }
}
