/** The result as Markdown, for the terminal, too. */
import { LOOP_P99_MAX, verdictOf } from './targets.mjs';

export function judge(row) {
  const verdict = verdictOf(row.title, row.value?.median);
  return verdict ? { ...row, ...verdict } : row;
}

export function markdown({ environment, rows, left }) {
  const pairs = rows.filter((row) => row.sides);
  const values = rows.filter((row) => !row.sides);
  const below = rows.filter((row) => row.verdict === 'BELOW FLOOR').length;
  const judged = rows.filter((row) => row.verdict).length;
  const late = rows.filter((row) => row.loopP99 > LOOP_P99_MAX);
  return [
    '# Bench',
    '',
    ...Object.entries(environment).map(([name, value]) => `- ${name}: ${value}`),
    '',
    ...table(
      [
        'row',
        'Holdfast ops/s (p50/p99 ms)',
        'CPU ms/op',
        'Azurite ops/s (p50/p99 ms)',
        'CPU ms/op',
        'ratio (min..max)',
        'less CPU',
        'floor',
        'aim',
        'verdict',
        'loop p99 ms',
      ],
      pairs.map((row) => [
        row.title,
        side(row.sides.holdfast),
        cpu(row.sides.holdfast),
        side(row.sides.azurite),
        cpu(row.sides.azurite),
        spreadText(row.value, 'x'),
        spreadText(row.cpuRatio, 'x'),
        bound(row.floor, row),
        bound(row.aim, row),
        verdictText(row),
        loop(row),
      ]),
    ),
    '',
    ...table(
      ['row', 'Holdfast (min..max)', 'Azurite', 'floor', 'aim', 'verdict', 'loop p99 ms', 'details'],
      values.map((row) => [
        row.title,
        spreadText(row.value, row.unit),
        spreadText(row.azurite, row.unit),
        bound(row.floor, row),
        bound(row.aim, row),
        verdictText(row),
        loop(row),
        row.details ?? '',
      ]),
    ),
    '',
    '## What the rows mean',
    '',
    ...rows.map((row) => `- **${row.title}**: ${row.meaning}.`),
    '',
    ...left.map((line) => `Not run: ${line}.`),
    `${judged - below} of ${judged} floors held${below > 0 ? `, ${below} NOT` : ''}; ` +
      `${rows.filter((row) => row.verdict === 'aim reached').length} aims reached; ` +
      `event loop p99 above ${LOOP_P99_MAX} ms in ${late.length} rows${late.length > 0 ? ` (${late.map((row) => row.title).join('; ')})` : ''}.`,
    '',
  ].join('\n');
}

export function table(heads, lines) {
  if (lines.length === 0) return [];
  const row = (cells) => `| ${cells.join(' | ')} |`;
  return [row(heads), row(heads.map(() => '---')), ...lines.map(row)];
}

export function side({ opsPerSecond, p50, p99 }) {
  return `${short(opsPerSecond.median)} (${short(p50)}/${short(p99)})`;
}

export function cpu({ cpuMillisecondsPerOperation }) {
  return short(cpuMillisecondsPerOperation);
}

export function spreadText(value, unit) {
  if (!value) return '';
  const range = value.min === value.max ? '' : ` (${short(value.min)}..${short(value.max)})`;
  return `${short(value.median)}${unit === 'x' ? 'x' : ` ${unit}`}${range}`;
}

function bound(value, { atLeast, unit }) {
  if (value === undefined) return '';
  return `${atLeast ? '≥' : '≤'} ${value}${unit === 'x' ? 'x' : ` ${unit}`}`;
}

function verdictText({ verdict, ofAim }) {
  if (!verdict) return '';
  return ofAim === undefined || verdict === 'aim reached'
    ? verdict
    : `${verdict}, ${Math.round(ofAim * 100)} % of the aim`;
}

function loop({ loopP99 }) {
  if (loopP99 === undefined) return '';
  return `${short(loopP99)}${loopP99 > LOOP_P99_MAX ? ' LATE' : ''}`;
}

export function short(value) {
  if (value >= 100) return String(Math.round(value));
  if (value >= 10) return value.toFixed(1);
  return value >= 1 ? value.toFixed(2) : value.toFixed(3);
}
