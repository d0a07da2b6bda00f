/** Without its quotes, which are HTTP's. A stamp is never repeated for a resource, so neither is its ETag. */
export function etagOf(stamp: bigint): string {
  return `0x${stamp.toString(16).toUpperCase()}`;
}
