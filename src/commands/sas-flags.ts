/** holdfast sas: what its words mean. */
import { millisecondsOf } from '../base/time.ts';
import { StartError } from '../config.ts';
import { parseSasDate } from '../rest/auth/sas.ts';
import { location, ownCommand, partition, partitionOf } from './command.ts';

export interface SasCommand {
  readonly location: string | undefined;
  /** Instead of the folder. */
  readonly partition: string | undefined;
  readonly account: string | undefined;
  readonly container: string | undefined;
  readonly blob: string | undefined;
  readonly permissions: string | undefined;
  /** ISO 8601, as it is signed; undefined: as the policy says. */
  readonly start: string | undefined;
  readonly expiry: string | undefined;
  readonly ip: string | undefined;
  readonly httpsOnly: boolean;
  readonly policy: string | undefined;
  readonly services: string;
  readonly resourceTypes: string;
  readonly blobUrl: string | undefined;
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

export const sas = ownCommand({
  usage: [['sas', 'print a URL with a signature: of an account, of a --container, or of a --blob in it']],
  flags: {
    location,
    partition,
    account: { type: 'string', short: 'a', value: 'name', help: 'whose key signs (devstoreaccount1, or the only one)' },
    container: { type: 'string', short: 'c', value: 'name', help: 'what it is for; without it all of the account' },
    blob: { type: 'string', short: 'b', value: 'name', help: 'a blob in the container' },
    permissions: { type: 'string', short: 'p', value: 'letters', help: 'what it allows (rl; of a blob r)' },
    expiry: { type: 'string', short: 'e', value: 'when', help: 'a time in UTC, or from now: 30m, 1h, 7d (1h)' },
    start: { type: 'string', value: 'when', help: 'a time in UTC, or from now (at once)' },
    ip: { type: 'string', value: 'address', help: 'from which it may be used: an address, or first-last' },
    'https-only': { type: 'boolean', help: 'refused over HTTP' },
    policy: { type: 'string', value: 'id', help: 'stored access policy of the container' },
    services: { type: 'string', value: 'letters', help: 'of an account: b (b)' },
    'resource-types': { type: 'string', value: 'letters', help: 'of an account: service, container, object (sco)' },
    'blob-url': { type: 'string', value: 'URL', help: 'of the blob service, where it is not the one that runs' },
  },
  read({ values, names: [surplus] }, env): SasCommand {
    const { container, blob, policy, services, permissions, ip } = values;
    if (surplus !== undefined) throw new StartError(`Unexpected ${surplus}: flags begin with --.`);
    if (container === undefined) {
      if (blob !== undefined) throw new StartError('--blob needs --container: a blob lies in one.');
      if (policy !== undefined) throw new StartError('--policy needs --container: that has the policies.');
    } else if (services !== undefined || values['resource-types'] !== undefined) {
      throw new StartError('--services and --resource-types are of an account: leave them out with --container.');
    }
    const blobUrl = values['blob-url'];
    if (blobUrl !== undefined && !(/^https?:\/\//.test(blobUrl) && URL.canParse(blobUrl)))
      throw new StartError(`--blob-url is a URL of http or https, not ${blobUrl}.`);
    const now = Date.now();
    return {
      partition: partitionOf(values, env),
      ...{ location: values.location, account: values.account, container, blob, policy, ip, blobUrl },
      permissions: permissions ?? (policy === undefined ? (blob === undefined ? 'rl' : 'r') : undefined),
      expiry:
        values.expiry === undefined && policy !== undefined ? undefined : instant('expiry', values.expiry ?? '1h', now),
      start: values.start === undefined ? undefined : instant('start', values.start, now),
      httpsOnly: values['https-only'] ?? false,
      services: services ?? 'b',
      resourceTypes: values['resource-types'] ?? 'sco',
    };
  },
});

/** To the second, as all versions take it. */
function instant(flag: string, text: string, now: number): string {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const at = unit ? now + Number(count) * UNIT_SECONDS[unit]! * 1_000 : utc(text);
  if (Number.isNaN(at))
    throw new StartError(`--${flag} is a time such as 1h, 7d or 2030-01-01T12:00:00Z, not ${text}.`);
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}

function utc(text: string): number {
  const ticks = parseSasDate(text);
  return ticks === undefined ? Number.NaN : millisecondsOf(ticks);
}
