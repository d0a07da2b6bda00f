/** Snapshots of blobs: the text that names one, and what Delete Blob does to a blob that has some. Instants are ticks. */
import { parseIso7 } from '../base/time.ts';

/** A snapshot is named by its moment, in the text of `formatIso7`. */
export const parseSnapshotTime = parseIso7;

/** The header x-ms-delete-snapshots; undefined: not sent. */
export type DeleteSnapshots = 'include' | 'only' | undefined;

export interface DeletePlan {
  readonly base: boolean;
  readonly snapshots: boolean;
}

/**
 * What a Delete Blob on the base blob deletes. No blob is deleted while it has snapshots that the request does not name; where there is
 * none, "only" finds nothing.
 */
export function judgeDelete(
  asked: DeleteSnapshots,
  hasSnapshots: boolean,
): DeletePlan | 'SnapshotsPresent' | 'BlobNotFound' {
  if (asked === undefined && hasSnapshots) return 'SnapshotsPresent';
  if (asked === 'only' && !hasSnapshots) return 'BlobNotFound';
  return { base: asked !== 'only', snapshots: hasSnapshots };
}
