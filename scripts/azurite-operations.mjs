/**
 * What Azurite does, for docs/operations.md: found out by sending it a request of each operation of ours. It answers 501 to those that are listed
 * here, or does not know them.
 */
export const AZURITE_VERSION = '3.37.0';

/** By our names of operations. */
export const missingInAzurite = new Set([
  'Append Block From URL',
  'Create Session',
  'Delete Blob Immutability Policy',
  'Incremental Copy Blob',
  'Put Blob From URL',
  'Put Page From URL',
  'Query Blob Contents',
  'Restore Container',
  'Set Blob Expiry',
  'Set Blob Immutability Policy',
  'Set Blob Legal Hold',
  'Undelete Blob',
]);
