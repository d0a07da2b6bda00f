/** The flags of `start`, in the groups of the help. */
import { logFormats, logLevels } from '../server/config.ts';
import type { ServiceName } from '../services/common/names.ts';
import type { Flags } from './arguments.ts';
import { extents, location, partition } from './subcommand.ts';

const keepAliveFlag = { type: 'string', value: 'seconds', help: 'how long an idle connection stays open (5)' } as const;

function hostFlag(service: ServiceName) {
  return { type: 'string', value: 'host', help: `address that the ${service} service listens on (127.0.0.1)` } as const;
}

function portFlag(service: ServiceName, usual: number) {
  return {
    type: 'string',
    value: 'port',
    help: `port of the ${service} service (${usual}; 0 picks a free one)`,
  } as const;
}

const dataFlags = {
  location,
  partition,
  extents,
  inMemoryPersistence: { type: 'boolean', help: 'keep the data in memory, and lose it at the end' },
  seed: { type: 'string', value: 'file', help: 'YAML or JSON: containers, queues, tables ... to create where missing' },
  extentMemoryLimit: {
    type: 'string',
    value: 'MB',
    help: 'with --inMemoryPersistence: refuse uploads beyond this (half of the memory)',
  },
} as const satisfies Flags;

const addressFlags = {
  blobHost: hostFlag('blob'),
  blobPort: portFlag('blob', 10_000),
  queueHost: hostFlag('queue'),
  queuePort: portFlag('queue', 10_001),
  tableHost: hostFlag('table'),
  tablePort: portFlag('table', 10_002),
  fileHost: hostFlag('file'),
  filePort: portFlag('file', 10_003),
  blobKeepAliveTimeout: keepAliveFlag,
  queueKeepAliveTimeout: keepAliveFlag,
  tableKeepAliveTimeout: keepAliveFlag,
  fileKeepAliveTimeout: keepAliveFlag,
  smbHost: { type: 'string', value: 'host', help: 'address that SMB, the other way to files, listens on (127.0.0.1)' },
  smbPort: { type: 'string', value: 'port', help: 'port of SMB (10445; 0 picks a free one)' },
  'no-smb': { type: 'boolean', help: 'do not serve SMB' },
  'smb-require-encryption': { type: 'boolean', help: 'refuse SMB clients that do not encrypt' },
  'body-memory': { type: 'string', value: 'MB', help: 'bodies on their way in memory (an eighth of it, at most 512)' },
} as const satisfies Flags;

const securityFlags = {
  https: { type: 'string', value: 'auto', help: 'serve HTTPS with a certificate that is made and kept here' },
  cert: { type: 'string', value: 'file', help: 'serve HTTPS with this certificate: PEM, or a PFX with its key' },
  key: { type: 'string', value: 'file', help: 'its key in PEM' },
  pwd: { type: 'string', value: 'password', help: 'of the key, or of the PFX' },
  oauth: { type: 'string', value: 'basic', help: 'take bearer tokens unverified, for tests; needs HTTPS' },
  cors: { type: 'string', value: 'origins', help: "origins whose pages may call, separated by commas; '*' is all" },
  'copy-from': {
    type: 'string',
    repeats: true,
    value: 'origin',
    help: 'other server that copies may read from, as https://host:port; repeatable (none)',
  },
  'remote-metrics': { type: 'boolean', help: 'let other machines read /metrics, which names accounts and queues' },
  'allowed-hosts': {
    type: 'string',
    value: 'names',
    help: 'names of this server by which web pages may call, separated by commas',
  },
} as const satisfies Flags;

const behaviourFlags = {
  loose: { type: 'boolean', short: 'L', help: 'pass over headers and parameters of missing features' },
  disableProductStyleUrl: { type: 'boolean', help: 'look for the account in the path only, never in the host' },
  rehydration: {
    type: 'string',
    value: 'seconds',
    help: 'until an archived blob is back online (5; a fifth with high priority)',
  },
  'test-clock': { type: 'boolean', help: "let tests move the server's time and empty the server" },
  skipApiVersionCheck: { type: 'boolean', help: 'changes nothing: every well-formed version is served' },
  disableTelemetry: { type: 'boolean', help: 'changes nothing: there is no telemetry' },
} as const satisfies Flags;

const logFlags = {
  silent: { type: 'boolean', short: 's', help: 'print and log nothing but errors that end the start' },
  debug: { type: 'string', short: 'd', value: 'file', help: 'log at level debug, into this file' },
  'log-level': { type: 'string', value: 'level', help: `${logLevels.join(', ')} (info: a line for each request)` },
  'log-format': { type: 'string', value: 'format', help: `${logFormats.join(' or ')} (text)` },
} as const satisfies Flags;

const otherFlags = {
  help: { type: 'boolean', short: 'h', help: 'print this' },
  version: { type: 'boolean', short: 'v', help: 'print the version' },
} as const satisfies Flags;

/** In the order of the help. */
export const flagGroups: readonly (readonly [title: string, flags: Flags])[] = [
  ['Where the data is', dataFlags],
  ['Where the services listen', addressFlags],
  ['HTTPS, tokens and web pages', securityFlags],
  ['Behaviour', behaviourFlags],
  ['Log', logFlags],
  ['Other', otherFlags],
];

export const flags = {
  ...dataFlags,
  ...addressFlags,
  ...securityFlags,
  ...behaviourFlags,
  ...logFlags,
  ...otherFlags,
};
