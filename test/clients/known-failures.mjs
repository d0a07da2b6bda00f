/** Failures of Holdfast that are known, each with the feature that is missing. Any other failure makes the run fail. */

/** @type {readonly { client: string, title: RegExp, reason: string }[]} */
export const knownFailures = [];
