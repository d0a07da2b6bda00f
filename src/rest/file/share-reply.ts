/** The properties of a share in headers, by the version of the request. */
import { formatRfc1123 } from '../../base/time.ts';
import type { LeaseState } from '../../rules/lease.ts';
import type { FoundShare } from '../../services/file/share-reads.ts';
import { leaseHeaders } from '../lease-reply.ts';
import { metadataHeaders, validatorHeaders } from '../reply.ts';

const TIERS_SINCE = '2019-12-12';
const LEASES_SINCE = '2020-02-10';

/** A request without a version counts as one of the newest. */
export const hasTiers = (version: string): boolean => version === '' || version >= TIERS_SINCE;
export const hasLeases = (version: string): boolean => version === '' || version >= LEASES_SINCE;

export function shareHeaders(share: FoundShare, state: LeaseState, version: string) {
  return {
    ...validatorHeaders(share),
    ...metadataHeaders(share.metadata),
    ...(hasLeases(version) && leaseHeaders(share.lease, state)),
    ...(hasTiers(version) && {
      'x-ms-access-tier': share.tier,
      'x-ms-access-tier-change-time': formatRfc1123(share.tierChanged),
    }),
    'x-ms-share-quota': share.quota,
    'x-ms-has-immutability-policy': 'false',
    'x-ms-has-legal-hold': 'false',
  };
}

/** From this version on the usage is told in bytes, before in GiB. */
const BYTES_SINCE = '2018-11-09';
const BYTES_PER_GIB = 2n ** 30n;

export function shareStatsXml(usedBytes: bigint, version: string): string {
  const usage =
    version === '' || version >= BYTES_SINCE
      ? `<ShareUsageBytes>${usedBytes}</ShareUsageBytes>`
      : `<ShareUsage>${(usedBytes + BYTES_PER_GIB - 1n) / BYTES_PER_GIB}</ShareUsage>`;
  return `<ShareStats>${usage}</ShareStats>`;
}
