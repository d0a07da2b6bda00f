/** Conditional headers: the conditions of a request, judged by the ETag, the last change and the tags of a resource. */
import { truncateToSecond } from '../base/time.ts';
import { meetsTagCondition, type TagCondition } from './tag-filter.ts';
import type { Tags } from './tags.ts';

/** Without quotes. */
export type ETags = '*' | readonly string[];

/** Instants are ticks, as in base/time.ts. */
export interface Conditions {
  ifMatch?: ETags | undefined;
  ifNoneMatch?: ETags | undefined;
  ifModifiedSince?: bigint | undefined;
  ifUnmodifiedSince?: bigint | undefined;
  /** Of blobs only, beside any of the others. */
  ifTags?: TagCondition | undefined;
}

export interface Validators {
  readonly etag: string;
  readonly modified: bigint;
  readonly tags?: Tags;
}

export type ReadVerdict = 'proceed' | 'ConditionNotMet' | 'NotModified' | 'UnsatisfiableCondition';
export type WriteVerdict = 'proceed' | 'ConditionNotMet' | 'BlobAlreadyExists';

export interface WriteKind {
  /** Whether the write can create the resource, as Put Blob. */
  readonly creates: boolean;
  /** The request carries the valid id of the active lease. */
  readonly leaseHeld: boolean;
}

/** A read can have any combination: If-Match and If-Unmodified-Since must hold, and one of the other two if any was sent. */
export function judgeRead(found: Validators, conditions: Conditions): ReadVerdict {
  const { ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince } = conditions;
  if (ifNoneMatch === '*') return 'UnsatisfiableCondition';
  if (!meetsTags(found, conditions)) return 'ConditionNotMet';
  if (ifMatch !== undefined && !matchesEtag(ifMatch, found)) return 'ConditionNotMet';
  if (ifUnmodifiedSince !== undefined && changedAfter(ifUnmodifiedSince, found)) return 'ConditionNotMet';
  if (ifNoneMatch === undefined && ifModifiedSince === undefined) return 'proceed';
  const differs = ifNoneMatch !== undefined && !matchesEtag(ifNoneMatch, found);
  const changed = ifModifiedSince !== undefined && changedAfter(ifModifiedSince, found);
  return differs || changed ? 'proceed' : 'NotModified';
}

/** A write has one condition (see hasOneCondition); beside an ETag condition, its date counterpart does not count. */
export function judgeWrite(found: Validators | undefined, conditions: Conditions, kind: WriteKind): WriteVerdict {
  const { ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince } = conditions;
  if (!meetsTags(found, conditions)) return 'ConditionNotMet';
  if (found === undefined) return ifMatch === undefined ? 'proceed' : 'ConditionNotMet';

  if (ifMatch !== undefined) {
    if (!matchesEtag(ifMatch, found)) return 'ConditionNotMet';
  } else if (ifUnmodifiedSince !== undefined && changedAfter(ifUnmodifiedSince, found)) return 'ConditionNotMet';

  if (ifNoneMatch === '*') return judgeNoneMatchAny(kind);
  if (ifNoneMatch !== undefined) return matchesEtag(ifNoneMatch, found) ? 'ConditionNotMet' : 'proceed';
  if (ifModifiedSince !== undefined && !changedAfter(ifModifiedSince, found)) return 'ConditionNotMet';
  return 'proceed';
}

/** A write can have one condition with one ETag, or an ETag condition with its date counterpart. */
export function hasOneCondition(conditions: Conditions): boolean {
  const { ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince } = conditions;
  if (countEtags(ifMatch) > 1 || countEtags(ifNoneMatch) > 1) return false;
  const wantsUnchanged = ifMatch !== undefined || ifUnmodifiedSince !== undefined;
  const wantsChanged = ifNoneMatch !== undefined || ifModifiedSince !== undefined;
  return !(wantsUnchanged && wantsChanged);
}

/** Clients claim a blob by Set Blob Metadata with If-None-Match: *, and rely on only one of them succeeding. */
function judgeNoneMatchAny({ creates, leaseHeld }: WriteKind): WriteVerdict {
  if (!creates) return 'ConditionNotMet';
  return leaseHeld ? 'proceed' : 'BlobAlreadyExists';
}

function matchesEtag(etags: ETags, found: Validators): boolean {
  return etags === '*' || etags.includes(found.etag);
}

function meetsTags(found: Validators | undefined, { ifTags }: Conditions): boolean {
  return ifTags === undefined || meetsTagCondition(found?.tags, ifTags);
}

/** HTTP's dates have whole seconds, so the instant of the change is truncated before the comparison. */
function changedAfter(date: bigint, found: Validators): boolean {
  return truncateToSecond(found.modified) > date;
}

function countEtags(etags: ETags | undefined): number {
  return etags === undefined || etags === '*' ? 0 : etags.length;
}

/** Without the quotes of HTTP. A version is never repeated for a resource, so neither is its ETag. */
export function formatEtag(version: bigint): string {
  return `0x${version.toString(16).toUpperCase()}`;
}
