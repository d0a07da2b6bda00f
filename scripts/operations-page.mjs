/** docs/operations.md, as the operation tables have it. */
import { basename } from 'node:path';
import { AZURITE_VERSION, missingInAzurite } from './azurite-operations.mjs';

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

${Object.entries(services)
  .map(([service, rows]) => requests(service, rows))
  .join('\n')}`;
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

| operation | request | permission | conditions | covered by |
|---|---|---|---|---|
${implemented.map(line).join('\n')}
`;
}

const titleOf = (service) => `${service[0].toUpperCase()}${service.slice(1)}`;
const yesNo = (is) => (is ? 'yes' : 'no');
const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

function permissionOf(permission) {
  return permission.all ? permission.all.join(' and ') : [permission].flat().join(' or ');
}

function line(row) {
  const query = Object.entries(row.query).map(([name, value]) => (value === true ? name : `${name}=${value}`));
  const headers = Object.entries(row.when).map(([name, value]) => (value === true ? name : `${name}: ${value}`));
  const request = `${row.route}${query.length ? `?${query.join('&')}` : ''}${headers.map((each) => `, ${each}`).join('')}`;
  const cells = [
    row.name,
    `\`${request}\``,
    permissionOf(row.permission),
    row.conditions.join(', '),
    `[${basename(row.test)}](../${row.test})`,
  ];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
