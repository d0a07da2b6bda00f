/** The library: what `import { start } from 'holdfast'` gives. Most modules are loaded while the rows are being opened. */
import { type Log, openLog } from './base/log.ts';
import type { HoldfastServer } from './server/compose.ts';
import { type Config, resolveConfig, StartError, type StartOptions } from './server/config.ts';
import { openOwnedPartition } from './server/open-partition.ts';
import type * as storage from './server/open-storage.ts';
import type * as seeds from './server/seed/seed-plan.ts';
import { readCertificate } from './server/tls/certificate.ts';

export type { HoldfastServer } from './server/compose.ts';
export type { Account, CertificateFiles, LogOptions, StartOptions } from './server/config.ts';
export { CannotListen, StartError } from './server/config.ts';
export type { CheckResult, Where } from './server/open-storage.ts';
export type { Authority } from './server/tls/certificate.ts';
export type { AccountSettings } from './services/common/account-settings.ts';

export async function start(options: StartOptions = {}): Promise<HoldfastServer> {
  const config = resolveConfig(options);
  const log = openConfiguredLog(config);
  const givenCertificate = typeof config.https === 'object' ? readCertificate(config.https, new Date()) : undefined;
  const seed = config.seed === undefined ? undefined : await planSeed(config.seed);
  const [rows, { composeServer }] = await Promise.all([openOwnedPartition(config, log), import('./server/compose.ts')]);
  return composeServer({ config, log, rows, givenCertificate, seed });
}

export const check: typeof storage.check = async (...args) => (await import('./server/open-storage.ts')).check(...args);

export const withAccounts: typeof storage.withAccounts = async (...args) =>
  (await import('./server/open-storage.ts')).withAccounts(...args);

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
