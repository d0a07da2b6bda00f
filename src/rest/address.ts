/** The account and resource that a URL addresses. The accounts of the server decide between host style and path style, so no flag is needed. */
import { commonErrors, errorFactory, type StorageError } from '../services/common/errors.ts';
import type { Request, Shape } from './operation.ts';

const fail = errorFactory(commonErrors);

export type Address = Pick<
  Request,
  'rawPath' | 'rawQuery' | 'account' | 'secondary' | 'base' | 'readsHosts' | 'container' | 'item'
> & { readonly shape: Shape };

/** The resource of the part of a path after the account: empty, or a slash and more, still encoded. */
export type ParsePath = (rest: string) => Pick<Address, 'container' | 'item' | 'shape'>;

type IsAccount = (name: string) => boolean;

const SECONDARY = '-secondary';
const ABSOLUTE = /^https?:\/\/[^/?#]*/i;
/** A numeric IP address has no labels. */
const NUMERIC = /^(?:[\d.]+(?::\d*)?|\[.*)$/;

/**
 * Host-style if the first label of the host is an account, otherwise path-style: the first segment of the path is the account.
 * Percent-encoding is decoded once, and never in the path that is signed.
 */
export function parseAddress(
  url: string,
  host: string | undefined,
  isAccount: IsAccount,
  parsePath: ParsePath,
): Address {
  const absolute = url.startsWith('/') ? undefined : ABSOLUTE.exec(url);
  const target = absolute ? url.slice(absolute[0].length) : url;
  const question = target.indexOf('?');
  const rawPath = question < 0 ? target : target.slice(0, question);
  const rawQuery = question < 0 ? '' : target.slice(question + 1);
  if (!rawPath.startsWith('/')) throw fail('InvalidUri');

  const readsHosts = host !== undefined;
  const label = firstHostLabel(host);
  if (label !== undefined) {
    const account = primaryName(label);
    if (isAccount(account)) {
      const secondary = account !== label;
      const { container, item, shape } = parsePath(rawPath);
      return { rawPath, rawQuery, account, secondary, base: '', readsHosts, container, item, shape };
    }
  }
  const end = rawPath.indexOf('/', 1);
  const segment = decodePart(end < 0 ? rawPath.slice(1) : rawPath.slice(1, end));
  const account = isAccount(segment) ? segment : primaryName(segment);
  const secondary = account !== segment;
  const { container, item, shape } = parsePath(end < 0 ? '' : rawPath.slice(end));
  return { rawPath, rawQuery, account, secondary, base: `/${segment}`, readsHosts, container, item, shape };
}

/** A cache of one entry, written by firstHostLabel only: nearly every request names the same host as the one before. */
let lastHost: string | undefined;
let lastLabel: string | undefined;

/** The first label of a host that has several labels. */
function firstHostLabel(host: string | undefined): string | undefined {
  if (host === lastHost) return lastLabel;
  const dot = host === undefined || NUMERIC.test(host) ? -1 : host.indexOf('.');
  lastHost = host;
  lastLabel = dot < 1 ? undefined : host!.slice(0, dot).toLowerCase();
  return lastLabel;
}

function primaryName(name: string): string {
  return name.endsWith(SECONDARY) ? name.slice(0, -SECONDARY.length) : name;
}

/** A part of a path, percent-decoded. */
export function decodePart(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw fail('InvalidUri');
  }
}

export function unknownAccount({ account }: Address, host: string | undefined): StorageError {
  const label = firstHostLabel(host);
  const tried = [
    ...(label === undefined ? [] : [`the first label of the host, "${label}"`]),
    `the first segment of the path, "${account}"`,
  ];
  const verdict = tried.length > 1 ? 'neither is an account of this server' : 'is not an account of this server';
  return fail(
    'InvalidUri',
    undefined,
    `The requested URI does not represent any resource on the server: ${tried.join(', and ')}: ${verdict} (host ${host ?? 'not given'}).`,
  );
}
