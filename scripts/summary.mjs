/** The last lines of `npm test`: every skip with its reason, every failure by name, and the count of all. */

/**
 * @param {{ passed: number, failed: string[], skipped: { test: string, reason?: string }[] }} results
 * @param {{ test: string, reason: string }[]} allowed the skips that CI accepts: `test` is how the full name begins
 * @param {boolean} ci whether any other skip is a failure
 */
export function summarise(results, allowed, ci) {
  const lines = [];
  const failed = [...results.failed];
  for (const { test, reason } of results.skipped) {
    lines.push(`skipped: ${test}: ${reason || 'no reason given'}`);
    if (ci && !allowed.some((each) => test.startsWith(each.test))) failed.push(`${test}: CI allows no such skip`);
  }
  for (const test of failed) lines.push(`failed: ${test}`);
  const skips = results.skipped.length - (failed.length - results.failed.length);
  lines.push(`${results.passed} passed, ${failed.length} failed, ${skips} skipped`);
  return { lines, ok: failed.length === 0 };
}
