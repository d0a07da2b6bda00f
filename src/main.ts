/** What `import { start } from 'holdfast'` gives. It loads little itself: the rest comes once the rows are open. */
import { type Log, openLog } from './base/log.ts';
import { readCertificate } from './certificate.ts';
import { type Config, configOf, StartError, type StartOptions } from './config.ts';
import { openRows } from './rows.ts';
import type { HoldfastServer } from './server.ts';
import type * as store from './store.ts';

export type { Authority } from './certificate.ts';
export type { Account, CertificateFiles, LogOptions, StartOptions } from './config.ts';
export { CannotListen, StartError } from './config.ts';
export type { HoldfastServer } from './server.ts';
export type { CheckResult, Where } from './store.ts';

export async function start(options: StartOptions = {}): Promise<HoldfastServer> {
  const config = configOf(options);
  const log = logOf(config);
  const given = typeof config.https === 'object' ? readCertificate(config.https, new Date()) : undefined;
  const [rows, { serveOn }] = await Promise.all([openRows(config, log), import('./server.ts')]);
  return serveOn({ config, log, rows, given });
}

export const check: typeof store.check = async (...words) => (await import('./store.ts')).check(...words);

export const withAccounts: typeof store.withAccounts = async (...words) =>
  (await import('./store.ts')).withAccounts(...words);

function logOf({ log }: Config): Log {
  try {
    return openLog(log);
  } catch (error) {
    throw new StartError(
      `Cannot write the log ${log.file} (${(error as Error).message}): choose another file by --debug.`,
    );
  }
}
