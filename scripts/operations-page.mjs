/** docs/operations.md, as the operation tables have it. */
import { basename } from 'node:path';
import { formatSmbAccess } from '../build/rules/file/share-mode.js';
import { AZURITE_VERSION, missingInAzurite } from './azurite-operations.mjs';
import { smbSection } from './smb-section.mjs';

/** @typedef {readonly import('../src/rest/operation.ts').Operation<never>[]} Rows in the order in which the router tries them */

/** @param {Readonly<Record<string, Rows>>} services by the name of the service */
export function operationsPage(services) {
  return `# Operations

Printed from the operation tables by \`npm run docs\`. Azurite is version ${AZURITE_VERSION}; an operation that Holdfast does not have is answered with 501 and its name.
What differs from Azure in operations that are here is in [differences.md](differences.md).

${Object.entries(services)
  .map(([service, rows]) => overview(service, rows))
  .join('\n')}
# Requests

The requests of each operation, by name. The permission is what the caller must have (the account's key has all of them); the conditions are the headers that the operation honours.
Of an operation on a file or directory, the column *beside SMB* has the access that it counts as while SMB has the file open: a handle that does not share that access refuses the operation.

${Object.entries(services)
  .map(([service, rows]) => requests(service, rows))
  .join('\n')}
${smbSection()}`;
}

/** It has no File service at all. */
const isInAzurite = (service, name) => service !== 'file' && !missingInAzurite.has(name);

function overview(service, rows) {
  const names = [...new Set(rows.map((row) => row.name))].sort();
  const isHere = (name) => rows.some((row) => row.name === name && row.isImplemented);
  const lines = names.map((name) => `| ${name} | ${yesNo(isHere(name))} | ${yesNo(isInAzurite(service, name))} |`);
  return `## ${titleOf(service)}

| operation | Holdfast | Azurite |
|---|---|---|
${lines.join('\n')}
`;
}

function requests(service, rows) {
  const implemented = rows.filter((row) => row.isImplemented).sort((one, other) => compare(one.name, other.name));
  return `## ${titleOf(service)}: requests

| operation | request | permission | ${columnOf(service).title} | covered by |
|---|---|---|---|---|
${implemented.map((row) => line(row, columnOf(service).text(row))).join('\n')}
`;
}

const titleOf = (service) => `${service[0].toUpperCase()}${service.slice(1)}`;
const yesNo = (is) => (is ? 'yes' : 'no');
const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

function permissionOf(permission) {
  return permission.all ? permission.all.join(' and ') : [permission].flat().join(' or ');
}

/** The File service honours no conditions, and is the one that SMB shares. */
function columnOf(service) {
  if (service !== 'file') return { title: 'conditions', text: (row) => row.conditions.join(', ') };
  return { title: 'beside SMB', text: besideSmb };
}

function besideSmb({ smbAccess, readsCopySource }) {
  if (smbAccess === undefined) return '';
  return formatSmbAccess(smbAccess) + (readsCopySource ? `; the source: ${formatSmbAccess('read')}` : '');
}

function line(row, column) {
  const query = Object.entries(row.query).map(([name, value]) => (value === true ? name : `${name}=${value}`));
  const headers = Object.entries(row.when).map(([name, value]) => (value === true ? name : `${name}: ${value}`));
  const request = `${row.route}${query.length ? `?${query.join('&')}` : ''}${headers.map((each) => `, ${each}`).join('')}`;
  const cells = [
    row.name,
    `\`${request}\``,
    permissionOf(row.permission),
    column,
    `[${basename(row.test)}](../${row.test})`,
  ];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
