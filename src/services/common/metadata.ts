import { metadataFault } from '../../rules/metadata.ts';
import { commonErrors, errorFactory } from './errors.ts';

export type Metadata = Readonly<Record<string, string>>;

/** Metadata as it was sent: a name may occur twice. */
export type SentMetadata = readonly (readonly [name: string, value: string])[];

const fail = errorFactory(commonErrors);

export function parseMetadata(sent: SentMetadata): Metadata {
  const fault = metadataFault(sent);
  if (fault) throw fail(fault);
  return Object.fromEntries(sent);
}
