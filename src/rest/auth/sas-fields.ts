/** The fields that every shared access signature has. */
import { commonErrors, errorFactory, type StorageError } from '../../services/common/errors.ts';

const fail = errorFactory(commonErrors);

export type Query = Readonly<Record<string, string>>;

/** Texts as sent, since these were signed; an absent field is empty. */
export interface SasFields {
  readonly version: string;
  readonly permissions: string;
  readonly start: string;
  readonly expiry: string;
  readonly ip: string;
  readonly protocol: string;
  readonly encryptionScope: string;
}

export type SentSasFields = SasFields & { readonly signature: string };

/** The parameters of signatures of all kinds and services, user delegation included. */
const SAS_PARAMETERS = new Set(
  (
    'sv ss srt sr st se sp sip spr sig si ses sdd saoid suoid scid skoid sktid skt ske sks skv skdutid sduoid srh srq ' +
    'rscc rscd rsce rscl rsct tn spk srk epk erk'
  ).split(' '),
);

export function isSasField(name: string): boolean {
  return SAS_PARAMETERS.has(name);
}

export function requiredField(query: Query, name: string): string {
  const value = query[name];
  if (!value) throw sasRefused(`${name} is mandatory. Cannot be empty`);
  return value;
}

export function malformedField(name: string): StorageError {
  return sasRefused(`Signature fields not well formed: ${name}.`);
}

export function sasRefused(detail: string): StorageError {
  return fail('AuthenticationFailed', { AuthenticationErrorDetail: detail });
}
