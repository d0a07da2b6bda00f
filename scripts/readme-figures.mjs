/** The table of figures in the README, from the last bench: `npm run docs` writes it, a test verifies it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './prepare.mjs';

/** Titles of the bench, and what the README calls them. Rows in which Azurite is faster belong here, too. */
const rows = [
  ['Start to first answer', 'start to the first answer'],
  ['Private memory with 100,000 blobs', 'memory with 100,000 blobs'],
  ['Put Blob 1 KiB, 1 client', 'Put Blob of 1 KiB, 1 client'],
  ['Put Blob 1 KiB, 64 clients', 'Put Blob of 1 KiB, 64 clients'],
  ['Get Blob 1 KiB, 64 clients', 'Get Blob of 1 KiB, 64 clients'],
  ['Put Blob 1 MiB, 16 clients', 'Put Blob of 1 MiB, 16 clients'],
  ['Download of 256 MiB', 'download of 256 MiB'],
  ['List page of 5,000 among 100,000 blobs', 'list of 5,000 among 100,000 blobs'],
  ['Put Block List of 10,000 blocks', 'Put Block List of 10,000 blocks'],
  ['Queue put, 64 clients', 'Put Message, 64 clients'],
  ['Queue get + delete, depth 100,000', 'Get and Delete Message, 100,000 in the queue'],
  ['Table insert, 1 client', 'Insert Entity, 1 client'],
  ['Table insert, 64 clients', 'Insert Entity, 64 clients'],
  ['Table query of 1,000 among 100,000', 'query of 1,000 among 100,000 entities'],
];

const BEGIN = '<!-- figures: npm run docs -->';
const END = '<!-- end of figures -->';

/** @param {string} readme */
export function withFigures(readme) {
  const [before, rest] = readme.split(BEGIN);
  const after = rest?.split(END)[1];
  if (after === undefined) throw new Error('The README has no place for the figures.');
  return `${before}${BEGIN}\n${figures()}\n${END}${after}`;
}

function figures() {
  const results = JSON.parse(readFileSync(join(root, 'bench', 'results', 'default.json'), 'utf8'));
  const { date, machine, Azurite } = results.environment;
  const lines = rows.map(([title, label]) => line(label, findRow(results, title)));
  return `| | Holdfast | Azurite | |
|---|---|---|---|
${lines.join('\n')}

Measured on ${date.slice(0, 10)} with Azurite ${Azurite.split(';')[0]} (${machine}); requests per second, medians of five rounds. Holdfast has each write on the disk before it answers, Azurite has not. [All rows](bench/results/default.md).`;
}

function findRow(results, title) {
  const row = results.rows.find((each) => each.title === title);
  if (!row) throw new Error(`The bench has no row "${title}".`);
  return row;
}

function line(label, { sides, value, azurite, unit }) {
  if (!sides)
    return `| ${label} | ${quantity(value.median, unit)} | ${quantity(azurite.median, unit)} | ${times(azurite.median / value.median)} |`;
  const [ours, theirs] = [sides.holdfast, sides.azurite].map((side) => side.opsPerSecond.median);
  return `| ${label} | ${rate(ours)} | ${rate(theirs)} | ${times(value.median)} |`;
}

const rate = (perSecond) => `${quantity(perSecond, '').trim()}/s`;
const times = (ratio) => `${quantity(ratio, '').trim()} x`;

/** Two digits or more. */
function quantity(number, unit) {
  const digits = number >= 10 ? 0 : number >= 1 ? 1 : 2;
  return `${number.toFixed(digits).replace(/\B(?=(\d{3})+$)/g, ',')} ${unit}`;
}
