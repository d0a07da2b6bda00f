/** docs/operations.md, as the operation tables have it. */
import { basename } from 'node:path';

/**
 * @param {string} service
 * @param {readonly import('../src/rest/operation.ts').Operation<never>[]} rows in the order in which the router tries them
 */
export function operationsPage(service, rows) {
  const built = rows.filter((row) => row.built);
  const missing = [...new Set(rows.filter((row) => !row.built).map((row) => row.name))].sort();
  return `# Operations

Printed from the operation tables by \`npm run docs\`. Rows stand in the order in which a request is held against them: the one with the most
tests wins. The permission is what the caller must have (the account's key has all of them); the conditions are the headers that the operation honours.
What differs from Azure is in [differences.md](differences.md).

## ${service}

| operation | request | permission | conditions | covered by |
|---|---|---|---|---|
${built.map(line).join('\n')}

### Not built yet

Each is answered with 501 and its name.

${missing.map((name) => `- ${name}`).join('\n') || 'None.'}
`;
}

function line(row) {
  const query = Object.entries(row.query).map(([name, value]) => (value === true ? name : `${name}=${value}`));
  const headers = Object.entries(row.when).map(([name, value]) => (value === true ? name : `${name}: ${value}`));
  const request = `${row.route}${query.length ? `?${query.join('&')}` : ''}${headers.map((each) => `, ${each}`).join('')}`;
  const cells = [
    row.name,
    `\`${request}\``,
    [row.permission].flat().join(' or '),
    row.conditions.join(', '),
    `[${basename(row.test)}](../${row.test})`,
  ];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
