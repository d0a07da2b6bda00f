/** Options of `start()` by name: JavaScript programs have no compiler that finds a misspelt one. */
import { StartError, type StartOptions } from './public.ts';

const optionNames: Readonly<Record<keyof StartOptions, true>> = {
  services: true,
  blobHost: true,
  queueHost: true,
  tableHost: true,
  fileHost: true,
  blobPort: true,
  queuePort: true,
  tablePort: true,
  filePort: true,
  blobKeepAliveSeconds: true,
  queueKeepAliveSeconds: true,
  tableKeepAliveSeconds: true,
  fileKeepAliveSeconds: true,
  smb: true,
  smbHost: true,
  smbPort: true,
  smbRequireEncryption: true,
  inMemory: true,
  location: true,
  partition: true,
  extents: true,
  accounts: true,
  testClock: true,
  https: true,
  oauth: true,
  looseMode: true,
  pathStyleOnly: true,
  cors: true,
  allowedHosts: true,
  memoryBytesMax: true,
  bodyBytesMax: true,
  rehydrationSeconds: true,
  seed: true,
  remoteMetrics: true,
  copyFrom: true,
  log: true,
};

export function checkOptionNames(options: StartOptions): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(optionNames, name));
  if (unknown === undefined) return;
  throw new StartError(`There is no option ${unknown}; there are ${Object.keys(optionNames).join(', ')}.`);
}
