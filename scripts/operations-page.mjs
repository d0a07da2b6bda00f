/** docs/operations.md, as the operation tables have it. */
import { basename } from 'node:path';

/** @typedef {readonly import('../src/rest/operation.ts').Operation<never>[]} Rows in the order in which the router tries them */

/** @param {Readonly<Record<string, Rows>>} services by the name of the service */
export function operationsPage(services) {
  return `# Operations

Printed from the operation tables by \`npm run docs\`. Rows stand in the order in which a request is held against them: the one with the most
tests wins. The permission is what the caller must have (the account's key has all of them); the conditions are the headers that the operation honours.
What differs from Azure is in [differences.md](differences.md).

${Object.entries(services)
  .map(([service, rows]) => section(service, rows))
  .join('\n')}`;
}

function section(service, rows) {
  const implemented = rows.filter((row) => row.isImplemented);
  const missing = [...new Set(rows.filter((row) => !row.isImplemented).map((row) => row.name))].sort();
  return `## ${service[0].toUpperCase()}${service.slice(1)}

| operation | request | permission | conditions | covered by |
|---|---|---|---|---|
${implemented.map(line).join('\n')}
${missing.length > 0 ? notImplementedList(missing) : ''}`;
}

function notImplementedList(names) {
  return `
### Not built yet

Each is answered with 501 and its name.

${names.map((name) => `- ${name}`).join('\n')}
`;
}

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
