/** Where clients find the server, in the words that they take. */
import type { Account } from './config.ts';

/** Without a path. */
export function originOf(scheme: 'http' | 'https', host: string, port: number): string {
  return `${scheme}://${reachable(host)}:${port}`;
}

/** A host that clients can connect to, where the server listens on all of them. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

/** As every SDK takes it. Empty if there is no account to connect to. */
export function connectionStringOf(account: Account | undefined, origin: string): string {
  if (!account) return '';
  const { name, keys } = account;
  const protocol = new URL(origin).protocol.slice(0, -1);
  return `DefaultEndpointsProtocol=${protocol};AccountName=${name};AccountKey=${keys[0]};BlobEndpoint=${origin}/${name};`;
}
