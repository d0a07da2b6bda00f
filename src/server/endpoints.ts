/** Origins and connection strings by which clients reach the server. */
import type { ServiceName } from '../services/common/names.ts';
import type { Account } from './config.ts';

/** Of the services that are served, in their order. */
export type Origins = Readonly<Partial<Record<ServiceName, string>>>;

/** Without a path. */
export function formatOrigin(scheme: 'http' | 'https', host: string, port: number): string {
  return `${scheme}://${reachableHost(host)}:${port}`;
}

export function formatSmbUrl(host: string, port: number): string {
  return `smb://${reachableHost(host)}:${port}`;
}

/** A server that listens on all addresses is reached by loopback. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

/** As every SDK accepts it; empty if there is no account to connect to. */
export function formatConnectionString(account: Account | undefined, origins: Origins): string {
  if (!account) return '';
  const { name, keys } = account;
  const entries = Object.entries(origins);
  const protocol = new URL(entries[0]![1]).protocol.slice(0, -1);
  const endpoints = entries.map(([service, origin]) => `${serviceTitle(service)}Endpoint=${origin}/${name};`);
  return `DefaultEndpointsProtocol=${protocol};AccountName=${name};AccountKey=${keys[0]};${endpoints.join('')}`;
}

/** The name of the service with a capital letter, as Azure writes it. */
export function serviceTitle(service: string): string {
  return `${service[0]!.toUpperCase()}${service.slice(1)}`;
}
