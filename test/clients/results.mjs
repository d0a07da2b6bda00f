/** Parses the results that test programs print. */

/** @typedef {{ title: string, fault?: string, skipped?: boolean }} Check */

/** One JSON object for each check. @param {string} printed @returns {Check[]} */
export function parseJsonLines(printed) {
  return printed
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
}

/**
 * `-test.v` of Go. A test with tests below it counts only if it failed and none of those did.
 * @param {string} printed @returns {Check[]}
 */
export function parseGoTest(printed) {
  /** @type {Check[]} */
  const checks = [];
  const lines = printed.split('\n');
  for (const [index, line] of lines.entries()) {
    const [, outcome, title] = /^\s*--- (PASS|FAIL|SKIP): (\S+) \(/.exec(line) ?? [];
    if (title === undefined) continue;
    if (outcome === 'FAIL') checks.push({ title, fault: goFault(lines, index, title) });
    else checks.push(outcome === 'SKIP' ? { title, skipped: true } : { title });
  }
  return checks.filter(({ title, fault }) => {
    const below = checks.filter((other) => other.title.startsWith(`${title}/`));
    return fault === undefined ? below.length === 0 : below.every((other) => other.fault === undefined);
  });
}

/** @param {readonly string[]} lines @param {number} end @param {string} title */
function goFault(lines, end, title) {
  const begin = lines.findLastIndex(
    (line, index) => index < end && /^=== (RUN|CONT)\s/.test(line) && line.endsWith(title),
  );
  const said = lines
    .slice(begin + 1, end)
    .filter((line) => /Error:|error|expected|actual|RESPONSE|ERROR CODE/i.test(line));
  return said
    .map((line) => line.trim())
    .join(' | ')
    .slice(0, 1_200);
}

/** The text of Rust's test programs. @param {string} printed @returns {Check[]} */
export function parseCargoTest(printed) {
  return [...printed.matchAll(/^test (\S+)(?: - .*)? \.\.\. (ok|FAILED|ignored)/gm)].map(([, title = '', outcome]) => {
    if (outcome !== 'FAILED') return outcome === 'ok' ? { title } : { title, skipped: true };
    const begin = printed.indexOf(`---- ${title} stdout ----`);
    return { title, fault: printed.slice(begin, begin + 1_200).replaceAll('\n', ' | ') };
  });
}
