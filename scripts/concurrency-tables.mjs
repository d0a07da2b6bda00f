/** The tables of docs/guide/concurrency.md, from the operation tables: `npm run docs` writes them, a test verifies them. */
import { DELETE, formatSmbAccess, judgeOperation, READ, WRITE } from '../build/rules/file/share-mode.js';

/** @typedef {import('./operations-page.mjs').Rows} Rows */

/**
 * @param {string} page docs/guide/concurrency.md
 * @param {Readonly<Record<string, Rows>>} services by the name of the service
 */
export function withConcurrencyTables(page, services) {
  const tables = Object.entries(services).map(([service, rows]) => [`${service} operations`, tableOf(rows)]);
  return [...tables, ['share modes', shareModeTable(services.file ?? [])]].reduce(
    (text, [name, table]) => withTable(text, name, table),
    page,
  );
}

function withTable(page, name, table) {
  const [begin, end] = [`<!-- ${name}: npm run docs -->`, `<!-- end of ${name} -->`];
  const [before, rest] = page.split(begin);
  const after = rest?.split(end)[1];
  if (after === undefined) throw new Error(`The guide has no place for the table of ${name}.`);
  return `${before}${begin}\n${table}\n${end}${after}`;
}

/** @param {Rows} rows */
function tableOf(rows) {
  const concerned = rows.filter(isConcerned);
  const names = [...new Set(concerned.map(({ name }) => name))].sort();
  const columns = [
    { title: 'operation', cell: (row) => row.name },
    { title: 'returns an ETag', cell: (row) => (row.returnsETag ? 'yes' : '') },
    { title: 'conditions', cell: (row) => conditionsOf(row) },
    { title: 'lease id', cell: (row) => (row.takesLeaseId ? 'yes' : '') },
    { title: 'counts as SMB access', cell: (row) => (row.smbAccess ? formatSmbAccess(row.smbAccess) : '') },
  ].filter(({ title, cell }) => title === 'operation' || concerned.some((row) => cell(row) !== ''));
  if (columns.length === 1)
    return 'No operation of this service returns an ETag, takes conditions or takes a lease id.';
  // The rows of one name differ in what else they read.
  const lines = names.map((name) => columns.map(({ cell }) => cell(concerned.find((row) => row.name === name))));
  return formatTable(
    columns.map(({ title }) => title),
    lines,
  );
}

/** Which operations on files an open that reads refuses, by what it shares. */
function shareModeTable(rows) {
  const uses = ['read', 'write', 'replace', 'rename', 'lease', 'delete'];
  const heads = uses.map((use) => namesOf(rows.filter(({ smbAccess, shape }) => smbAccess === use && shape !== '/')));
  const bits = { reading: READ, writing: WRITE, deletion: DELETE };
  const modes = [0, READ, WRITE, DELETE, READ | WRITE, READ | DELETE, WRITE | DELETE, READ | WRITE | DELETE];
  const lines = modes.map((share) => {
    const shared = Object.keys(bits).filter((name) => (share & bits[name]) !== 0);
    const refused = (use) => (judgeOperation(use, [{ access: READ, share }]) === 'proceed' ? '' : '409');
    return [shared.join(', ') || 'nothing', ...uses.map(refused)];
  });
  return formatTable(['the handle shares', ...heads], lines);
}

const namesOf = (rows) =>
  [...new Set(rows.filter((row) => row.isImplemented).map(({ name }) => name))].sort().join(', ');

/** Operations on the service itself, and those that are not implemented, are left out. */
function isConcerned({ isImplemented, shape, methods }) {
  return isImplemented && shape !== '/' && !methods.includes('OPTIONS');
}

function conditionsOf({ conditions }) {
  return conditions.length === 4 ? 'all four' : conditions.map((name) => `\`${name}\``).join(', ');
}

function formatTable(head, lines) {
  const formatLine = (cells) => `| ${cells.join(' | ')} |`;
  return [formatLine(head), `|${'---|'.repeat(head.length)}`, ...lines.map(formatLine)].join('\n');
}
