/** What every shared access signature carries. */
import { commonErrors, raising, type StorageError } from '../../services/errors.ts';

const fail = raising(commonErrors);

export type Query = Readonly<Record<string, string>>;

/** Texts as they were sent, since they are what was signed; an absent one is empty. */
export interface SasFields {
  readonly version: string;
  readonly permissions: string;
  readonly start: string;
  readonly expiry: string;
  readonly ip: string;
  readonly protocol: string;
  readonly encryptionScope: string;
}

export type Common = SasFields & { readonly signature: string };

export function mandatory(query: Query, name: string): string {
  const value = query[name];
  if (!value) throw sasRefused(`${name} is mandatory. Cannot be empty`);
  return value;
}

export function malformed(name: string): StorageError {
  return sasRefused(`Signature fields not well formed: ${name}.`);
}

export function sasRefused(detail: string): StorageError {
  return fail('AuthenticationFailed', { AuthenticationErrorDetail: detail });
}
