/** Snapshots of blobs: the text that names one, and what Delete Blob does to a blob that has some. Instants are ticks. */
import { ticksFromUnix } from '../base/time.ts';

const MOMENT = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,7}))?Z$/;

/** The text of `formatIso7`. Undefined: it names no moment. */
export function parseSnapshotTime(text: string): bigint | undefined {
  const [, seconds, fraction = ''] = MOMENT.exec(text) ?? [];
  if (seconds === undefined) return undefined;
  const milliseconds = Date.parse(`${seconds}Z`);
  // Date.parse takes the 30th of February for the 2nd of March.
  if (Number.isNaN(milliseconds) || new Date(milliseconds).toISOString().slice(0, 19) !== seconds) return undefined;
  const ticks = ticksFromUnix(milliseconds) + BigInt(fraction.padEnd(7, '0'));
  return ticks < 0n ? undefined : ticks;
}

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
