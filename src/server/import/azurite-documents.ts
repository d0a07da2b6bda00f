/** Reads the fields that documents of Azurite have. A field that is missing or of another type throws, and its document is not taken. */

import { ticksFromUnix } from '../../base/time.ts';
import { createXmlReader } from '../../base/xml.ts';
import { parsePolicies, policiesXml } from '../../rest/xml/access-policies.ts';
import { NEVER } from '../../rules/queue/messages.ts';
import type { ServiceName } from '../../services/common/names.ts';
import type { AccessPolicy } from '../../services/common/policies.ts';
import type { Persistency } from './azurite-folder.ts';
import type { LokiDocument } from './loki-file.ts';

export function textOf(document: LokiDocument, field: string): string {
  const value = document[field];
  if (typeof value !== 'string') throw new Error(`it has no ${field}`);
  return value;
}

/** Of the map `properties`; undefined: it is not there. */
export function propertyOf(document: LokiDocument, name: string): unknown {
  return mapOf(document.properties)[name] ?? undefined;
}

export function textProperty(document: LokiDocument, name: string): string | undefined {
  const value = propertyOf(document, name);
  return typeof value === 'string' ? value : undefined;
}

export function mapOf(value: unknown): LokiDocument {
  return typeof value === 'object' && value !== null ? (value as LokiDocument) : {};
}

export function metadataOf({ metadata }: LokiDocument): [name: string, value: string][] {
  return Object.entries(mapOf(metadata)).map(([name, value]) => [name, String(value)]);
}

export function persistencyOf(value: unknown): Persistency {
  const { id, offset, count } = mapOf(value);
  if (typeof id !== 'string' || !isLength(offset) || !isLength(count))
    throw new Error('it does not say where its bytes are');
  return { id, offset, count };
}

export function lengthOf(map: LokiDocument, field: string): number {
  const value = map[field];
  if (!isLength(value)) throw new Error(`its ${field} is not a length`);
  return value;
}

function isLength(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** A time in ISO 8601 or in Unix milliseconds. */
export function instantOf(document: LokiDocument, field: string): bigint {
  const instant = parseInstant(document[field]);
  if (instant === undefined) throw new Error(`its ${field} is not a time`);
  return instant;
}

function parseInstant(value: unknown): bigint | undefined {
  const milliseconds = typeof value === 'number' ? value : Date.parse(String(value));
  const year = new Date(milliseconds).getUTCFullYear();
  if (!(year >= 1)) return undefined;
  return year >= 9999 ? NEVER : ticksFromUnix(Math.round(milliseconds));
}

/** Buffers become lists of bytes, or maps of them, when they are written as JSON. */
export function base64Of(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  const bytes = Array.isArray(value) ? value : Object.values(mapOf(mapOf(value).data ?? value));
  return bytes.length === 0 ? undefined : Buffer.from(bytes as number[]).toString('base64');
}

/** Judged as if a client had sent them. */
export function policiesOf(acl: unknown, service: ServiceName): AccessPolicy[] {
  if (!Array.isArray(acl)) return [];
  const policies = acl.map((each) => {
    const { id, accessPolicy } = mapOf(each);
    return { ...(mapOf(accessPolicy) as Omit<AccessPolicy, 'id'>), id: String(id) };
  });
  const reader = createXmlReader();
  reader.write(Buffer.from(policiesXml(policies)));
  return parsePolicies(reader.end(), service);
}

export function hasInfiniteLease(document: LokiDocument): boolean {
  return propertyOf(document, 'leaseState') === 'leased' && propertyOf(document, 'leaseDuration') === 'infinite';
}

/** Of a minute at most. One that ended while Azurite did not look at it has still the state in which it was. */
export function hasFiniteLease(document: LokiDocument): boolean {
  const state = propertyOf(document, 'leaseState');
  return (state === 'leased' || state === 'breaking') && !hasInfiniteLease(document);
}

export function isAlive(document: LokiDocument, now: bigint): boolean {
  const expires = parseInstant(document.expirationTime);
  return expires === undefined || expires > now;
}
