/**
 * Test files that `npm run test:quick` leaves out, because they are slow or need more than Node. The quick run prints its slowest
 * files: what does not fit into a minute on two cores any more belongs here. Files that mock modules do, too: the quick run shares processes
 * between files. A pattern is a file, or a folder and `/**`.
 */
export const quickExcludes = [
  'src/extents/local-faults.test.ts',
  'src/extents/local.test.ts',
  'src/partition/lmdb/engine.test.ts',
  'src/partition/lmdb/disk-space.test.ts',
  'src/partition/lmdb/wal.test.ts',
  'src/partition/model.test.ts',
  'src/partition/postgres/engine.test.ts',
  'src/partition/postgres/failures.test.ts',
  'src/partition/postgres/pages.test.ts',
  'src/partition/postgres/races.test.ts',
  'src/services/blob/long-block-lists.test.ts',
  'src/hashing/crc32.test.ts',
  'test/anomalies/**',
  'test/clients/**',
  'test/crash/**',
  'test/end-to-end/blob-names.test.ts',
  'test/end-to-end/condition-tables.test.ts',
  'test/end-to-end/copy-blob.test.ts',
  'test/end-to-end/examples.test.ts',
  'test/end-to-end/https.test.ts',
  'test/end-to-end/lease-tables.test.ts',
  'test/end-to-end/list-blobs.test.ts',
  'test/end-to-end/put-block-list.test.ts',
  'test/end-to-end/refusals.test.ts',
  'test/end-to-end/uploads.test.ts',
  'test/growth/**',
  'test/histories/**',
  'test/malformed-requests/**',
  'test/races/**',
  'test/repository/**',
];
