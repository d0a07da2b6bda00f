/** Flags and arguments of `holdfast sas`. */
import { unixFromTicks } from '../base/time.ts';
import { parseSasDate } from '../rest/auth/sas-parser.ts';
import type { TableSasFields } from '../rest/auth/service-sas.ts';
import { normalizeSlashes } from '../rest/blob/params.ts';
import { StartError } from '../server/config.ts';
import { type ServiceName, serviceNames } from '../services/common/names.ts';
import type { Flags, Values } from './arguments.ts';
import { defineSubcommand, location, partition, partitionFrom } from './subcommand.ts';

/** The resource that a signature opens. */
export type SasSubject =
  | { readonly kind: 'account'; readonly services: string; readonly resourceTypes: string }
  | { readonly kind: 'blob'; readonly container: string; readonly blob: string | undefined }
  | { readonly kind: 'queue'; readonly queue: string }
  | { readonly kind: 'table'; readonly table: string; readonly keys: TableSasFields['keys'] }
  | { readonly kind: 'file'; readonly share: string; readonly path: string | undefined };

const sasForms = ['url', 'token', 'connection-string'] as const;
export type SasForm = (typeof sasForms)[number];

export interface SasCommand {
  readonly location: string | undefined;
  /** URL of a shared store, instead of the folder. */
  readonly partition: string | undefined;
  readonly account: string | undefined;
  readonly subject: SasSubject;
  readonly permissions: string | undefined;
  /** ISO 8601, as it is signed; undefined: the stored access policy has it. */
  readonly start: string | undefined;
  readonly expiry: string | undefined;
  readonly ip: string | undefined;
  readonly httpsOnly: boolean;
  readonly policy: string | undefined;
  readonly form: SasForm;
  /** Of services that are not those of the running server. */
  readonly urls: Readonly<Partial<Record<ServiceName, string>>>;
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };
const KEY_FLAGS = ['start-pk', 'start-rk', 'end-pk', 'end-rk'] as const;

const flags = {
  location,
  partition,
  account: { type: 'string', short: 'a', value: 'name', help: 'whose key signs (devstoreaccount1, or the only one)' },
  container: { type: 'string', short: 'c', value: 'name', help: 'what it is for; without any all of the account' },
  blob: { type: 'string', short: 'b', value: 'name', help: 'a blob in the container' },
  queue: { type: 'string', short: 'q', value: 'name', help: 'what it is for' },
  table: { type: 'string', short: 't', value: 'name', help: 'what it is for' },
  share: { type: 'string', short: 's', value: 'name', help: 'what it is for' },
  file: { type: 'string', short: 'f', value: 'path', help: 'a file in the share' },
  permissions: {
    type: 'string',
    short: 'p',
    value: 'letters',
    help: 'what it allows (rl; of a blob, queue, table or file r)',
  },
  expiry: { type: 'string', short: 'e', value: 'when', help: 'a time in UTC, or from now: 30m, 1h, 7d (1h)' },
  start: { type: 'string', value: 'when', help: 'a time in UTC, or from now (at once)' },
  ip: { type: 'string', value: 'address', help: 'from which it may be used: an address, or first-last' },
  'https-only': { type: 'boolean', help: 'refused over HTTP' },
  policy: { type: 'string', value: 'id', help: 'stored access policy of the container, queue, table or share' },
  'start-pk': { type: 'string', value: 'key', help: 'of a table: partition key of the first entity' },
  'start-rk': { type: 'string', value: 'key', help: 'of a table: row key of the first entity' },
  'end-pk': { type: 'string', value: 'key', help: 'of a table: partition key of the last entity' },
  'end-rk': { type: 'string', value: 'key', help: 'of a table: row key of the last entity' },
  services: { type: 'string', value: 'letters', help: 'of an account: blob, queue, table, file (bqtf)' },
  'resource-types': { type: 'string', value: 'letters', help: 'of an account: service, container, object (sco)' },
  as: { type: 'string', value: 'form', help: `${sasForms.join(', ')} (url)` },
  'blob-url': { type: 'string', value: 'URL', help: 'of the blob service, where it is not the one that runs' },
  'queue-url': { type: 'string', value: 'URL', help: 'of the queue service, likewise' },
  'table-url': { type: 'string', value: 'URL', help: 'of the table service, likewise' },
  'file-url': { type: 'string', value: 'URL', help: 'of the file service, likewise' },
} as const satisfies Flags;

type SasValues = Values<typeof flags>;

export const sas = defineSubcommand({
  usage: [
    [
      'sas',
      'print URLs with a signature: of an account, or of a --container, --blob, --queue, --table, --share or --file',
    ],
  ],
  flags,
  parse({ values, positionals: [surplus] }, env): SasCommand {
    if (surplus !== undefined) throw new StartError(`Unexpected ${surplus}: flags begin with --.`);
    const { policy, permissions, expiry, start, ip } = values;
    const subject = parseSubject(values);
    if (subject.kind === 'account' && policy !== undefined)
      throw new StartError('--policy needs --container, --queue, --table or --share: these have policies.');
    const form = sasForms.find((each) => each === (values.as ?? 'url'));
    if (form === undefined) throw new StartError(`--as is ${sasForms.join(', ')}, not ${values.as}.`);
    const now = Date.now();
    return {
      partition: partitionFrom(values, env),
      ...{ location: values.location, account: values.account, subject, policy, ip, form },
      permissions: permissions ?? (policy === undefined ? defaultPermissions(subject) : undefined),
      expiry: expiry === undefined && policy !== undefined ? undefined : parseTime('expiry', expiry ?? '1h', now),
      start: start === undefined ? undefined : parseTime('start', start, now),
      httpsOnly: values['https-only'] ?? false,
      urls: parseUrls(values),
    };
  },
});

function parseSubject(words: SasValues): SasSubject {
  const { container, blob, queue, table, share, file, services, 'resource-types': resourceTypes } = words;
  const [first, second] = (['container', 'queue', 'table', 'share'] as const).filter(
    (flag) => words[flag] !== undefined,
  );
  if (second !== undefined) throw new StartError(`A signature is for one: leave out --${first} or --${second}.`);
  if (blob !== undefined && container === undefined)
    throw new StartError('--blob needs --container: a blob lies in one.');
  if (file !== undefined && share === undefined) throw new StartError('--file needs --share: a file lies in one.');
  if (first !== undefined && (services ?? resourceTypes) !== undefined)
    throw new StartError(`--services and --resource-types are of an account: leave them out with --${first}.`);
  const { 'start-pk': spk, 'start-rk': srk, 'end-pk': epk, 'end-rk': erk } = words;
  const given = KEY_FLAGS.find((flag) => words[flag] !== undefined);
  if (given !== undefined && table === undefined) throw new StartError(`--${given} needs --table: that has entities.`);
  if (table !== undefined) {
    if (srk !== undefined && spk === undefined) throw new StartError('--start-rk needs --start-pk.');
    if (erk !== undefined && epk === undefined) throw new StartError('--end-rk needs --end-pk.');
    return { kind: 'table', table, keys: [spk, srk, epk, erk] };
  }
  if (queue !== undefined) return { kind: 'queue', queue };
  if (share !== undefined) return { kind: 'file', share, path: file && normalizeSlashes(file) };
  if (container !== undefined) return { kind: 'blob', container, blob: blob && normalizeSlashes(blob) };
  if (services !== undefined && !/^[bqtf]+$/.test(services))
    throw new StartError(`--services are letters of b, q, t and f, not ${services}.`);
  return { kind: 'account', services: services ?? 'bqtf', resourceTypes: resourceTypes ?? 'sco' };
}

function defaultPermissions(subject: SasSubject): string {
  const isListed =
    subject.kind === 'account' ||
    (subject.kind === 'blob' && subject.blob === undefined) ||
    (subject.kind === 'file' && subject.path === undefined);
  return isListed ? 'rl' : 'r';
}

function parseUrls(words: SasValues): SasCommand['urls'] {
  const urls: Partial<Record<ServiceName, string>> = {};
  for (const service of serviceNames) {
    const url = words[`${service}-url`];
    if (url === undefined) continue;
    if (!(/^https?:\/\//.test(url) && URL.canParse(url)))
      throw new StartError(`--${service}-url is a URL of http or https, not ${url}.`);
    urls[service] = url.replace(/\/+$/, '');
  }
  return urls;
}

/** To the second: all service versions accept that form. */
function parseTime(flag: string, text: string, now: number): string {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const at = unit ? now + Number(count) * UNIT_SECONDS[unit]! * 1_000 : parseUtc(text);
  if (Number.isNaN(at))
    throw new StartError(`--${flag} is a time such as 1h, 7d or 2030-01-01T12:00:00Z, not ${text}.`);
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}

function parseUtc(text: string): number {
  const ticks = parseSasDate(text);
  return ticks === undefined ? Number.NaN : unixFromTicks(ticks);
}
