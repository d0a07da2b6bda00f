/** Valid metadata. Names keep their case and are compared without it. */
export type MetadataFault = 'EmptyMetadataKey' | 'InvalidMetadata' | 'MetadataTooLarge';

/** A C# identifier, as far as the name of an HTTP header can be one. */
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
const METADATA_BYTES_MAX = 8 * 1024;

/** Takes pairs as they were sent, so that a repeated name is still repeated. Header text has one byte per character. */
export function metadataFault(pairs: Iterable<readonly [name: string, value: string]>): MetadataFault | undefined {
  const seen = new Set<string>();
  let bytes = 0;
  for (const [name, value] of pairs) {
    if (name === '') return 'EmptyMetadataKey';
    if (!IDENTIFIER.test(name)) return 'InvalidMetadata';
    const folded = name.toLowerCase();
    if (seen.has(folded)) return 'InvalidMetadata';
    seen.add(folded);
    bytes += name.length + value.length;
  }
  return bytes > METADATA_BYTES_MAX ? 'MetadataTooLarge' : undefined;
}
