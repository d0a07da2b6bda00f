/**
 * node scripts/replay-report.mjs <results.json>: verifies a replay of recorded answers of the real service against
 * scripts/replay-differences.md. Prints every severe or medium difference that no row there lists, and fails if there is one.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './prepare.mjs';

/** The answer of an operation that is not implemented refers to this page. */
const NOT_IMPLEMENTED_PAGE = 'docs/operations.md';
const HEADING = /^operation,part,recorded,answered( after that)?$/;

/** The rows of all tables with this heading; `*` stands for any text. */
export function readRows(page) {
  const rows = [];
  let heading;
  for (const line of page.split('\n')) {
    const cells = line.startsWith('|') ? splitCells(line) : [];
    const headed = HEADING.exec(cells.join());
    if (headed || cells.length === 0) heading = headed;
    else if (heading && !/^-+$/.test(cells[0])) {
      rows.push({ line, patterns: cells.map(compilePattern), afterwards: heading[1] !== undefined, used: 0 });
    }
  }
  return rows;
}

/** Kinds of differences that no row lists, with their count and an example, and the number of all differences. */
export function findUnlisted(results, rows) {
  const found = new Map();
  let differences = 0;
  for (const { cassette, results: answers } of results.cassettes) {
    for (const answer of answers) {
      if (answer.got?.status === 501 && answer.got.body?.includes(NOT_IMPLEMENTED_PAGE)) continue;
      for (const { severity, field, how, recorded, got } of answer.findings ?? []) {
        if (severity === 'minor') continue;
        differences++;
        const texts = [answer.op, field, recorded ?? '', got || how].map(String);
        const row = rows.find((each) => matches(each, texts, answer.after));
        if (row) row.used++;
        else {
          const line = texts.join(' | ');
          const seen = found.get(line);
          found.set(line, { count: (seen?.count ?? 0) + 1, example: seen?.example ?? `${cassette}[${answer.i}]` });
        }
      }
    }
  }
  return { found, differences };
}

function matches({ patterns, afterwards }, texts, after) {
  return (after || !afterwards) && patterns.every((pattern, at) => pattern.test(texts[at]));
}

function splitCells(line) {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll('`', ''));
}

function compilePattern(text) {
  const words = text.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${words.join('.*')}$`, 's');
}

function report([file]) {
  if (!file) throw new Error('Name the JSON file of a replay.');
  const rows = readRows(readFileSync(join(root, 'scripts', 'replay-differences.md'), 'utf8'));
  const { found, differences } = findUnlisted(JSON.parse(readFileSync(file, 'utf8')), rows);
  for (const [line, { count, example }] of found) console.log(`not listed, ${count} times: ${line} (${example})`);
  for (const { line } of rows.filter((row) => row.used === 0)) console.log(`listed, but not seen: ${line}`);
  console.log(`${differences} differences of operations that are built, ${found.size} kinds of them not listed`);
  process.exitCode = found.size === 0 ? 0 : 1;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) report(process.argv.slice(2));
