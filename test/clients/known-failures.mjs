/** Failures of Holdfast that are known, each with the missing feature. A failure that no row has makes the run fail. */

/** @type {readonly { client: string, title: RegExp, reason: string }[]} */
export const knownFailures = [];
