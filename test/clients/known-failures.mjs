/** Failures of Holdfast that are known, each with the feature that is missing. Any other failure makes the run fail. */

/** @type {readonly { client: string, title: RegExp, reason: string }[]} */
export const knownFailures = [
  { client: 'go', title: /^reads a snapshot$/, reason: 'snapshots' },
  { client: 'go', title: /^appends$/, reason: 'append blobs' },
  { client: 'go', title: /^writes pages$/, reason: 'page blobs' },
  { client: 'java', title: /^reads a snapshot$/, reason: 'snapshots' },
  { client: 'java', title: /^appends$/, reason: 'append blobs' },
  { client: 'java', title: /^writes pages$/, reason: 'page blobs' },
  { client: 'rust', title: /^reads a snapshot$/, reason: 'snapshots' },
  { client: 'rust', title: /^appends$/, reason: 'append blobs' },
  { client: 'rust', title: /^writes pages$/, reason: 'page blobs' },
  { client: 'opendal', title: /^appends$/, reason: 'append blobs' },
  { client: 'adlfs', title: /^appends$/, reason: 'append blobs' },
  { client: 'az', title: /^takes a snapshot$/, reason: 'snapshots' },
  { client: 'az', title: /^uploads an append blob$/, reason: 'append blobs' },
  { client: 'az', title: /^uploads a page blob$/, reason: 'page blobs' },
];
