/**
 * Test files that `npm run test:quick` leaves out, because they are slow or need more than Node. The quick run prints its slowest
 * files: what does not fit into a minute on two cores any more belongs here. A pattern is a file, or a folder and `/**`.
 */
export const quickExcludes = [
  'test/anomalies/**',
  'test/clients/**',
  'test/crash/**',
  'test/growth/**',
  'test/histories/**',
  'test/malformed-requests/**',
  'test/races/**',
  'test/repository/**',
];
