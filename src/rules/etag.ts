/** Without the quotes of HTTP. A version is never repeated for a resource, so neither is its ETag. */
export function formatEtag(version: bigint): string {
  return `0x${version.toString(16).toUpperCase()}`;
}
