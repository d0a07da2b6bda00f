/** What is printed: a line for each failure, and a table of the clients, with the counts of both servers. */
import { knownFailures } from './known-failures.mjs';

/** @typedef {import('./results.mjs').Check} Check */
/** @typedef {{ name: string, version?: string, unavailable?: string, checks: Partial<Record<string, readonly Check[]>> }} Result */

const FAULT_LENGTH = 800;

/** Another failure of the same check is news. */
const NOT_IMPLEMENTED = /not ?implemented/i;

/** The missing feature, if the check is known to fail by it. @param {string} client @param {Check} check @param {typeof knownFailures} rows */
function findReason(client, { title, fault }, rows = knownFailures) {
  if (fault !== undefined && !NOT_IMPLEMENTED.test(fault)) return undefined;
  return rows.find((known) => known.client === client && known.title.test(title))?.reason;
}

/** Of Holdfast: the failures that no row of known-failures.mjs explains. @param {Result} result @param {typeof knownFailures} [rows] */
export function unknownFailures({ name, checks }, rows) {
  return (checks.holdfast ?? []).filter((check) => check.fault !== undefined && !findReason(name, check, rows));
}

/** @param {Result} result @param {string} kind */
export function formatFailures({ name, checks }, kind) {
  return (checks[kind] ?? []).flatMap((check) => {
    const { title, fault } = check;
    const reason = kind === 'holdfast' && findReason(name, check);
    if (fault === undefined) return reason ? `  passes  ${title}, which known-failures.mjs has (${reason})` : [];
    if (reason) return `  known   ${title}: ${reason}`;
    return `  failed  ${title}: ${fault.replaceAll(/\s+/g, ' ').slice(0, FAULT_LENGTH)}`;
  });
}

/** @param {readonly Result[]} results @param {readonly { kind: string, title: string }[]} servers */
export function formatTable(results, servers) {
  const counts = ['passed', 'failed', 'skipped'];
  const lines = results.map(({ name, version = '', unavailable, checks }) => {
    if (unavailable !== undefined) return `| ${name} | | skipped: ${unavailable.replaceAll('|', '/').slice(0, 160)} |`;
    const cells = servers.flatMap(({ kind }) => {
      const found = checks[kind];
      if (!found) return ['-', '-', '-'];
      const failed = found.filter(({ fault }) => fault !== undefined).length;
      const skipped = found.filter((check) => check.skipped).length;
      return [found.length - failed - skipped, failed, skipped];
    });
    return `| ${[name, version, ...cells].join(' | ')} |`;
  });
  const titles = servers.flatMap(({ title }) => counts.map((count) => `${title} ${count}`));
  const columns = ['client', 'version', ...titles];
  return [`| ${columns.join(' | ')} |`, `|${'---|'.repeat(columns.length)}`, ...lines].join('\n');
}
