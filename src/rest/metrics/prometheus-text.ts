/** Metric families in Prometheus' text form, version 0.0.4. */
import type { Histogram } from '../../base/histogram.ts';

export type Labels = Readonly<Record<string, string>>;

export type MetricFamily = { readonly name: string; readonly help: string } & (
  | { readonly type: 'counter' | 'gauge'; readonly samples: readonly Sample[] }
  | { readonly type: 'histogram'; readonly samples: readonly HistogramSample[] }
);

interface Sample {
  readonly labels?: Labels;
  readonly value: number;
}

interface HistogramSample {
  readonly labels?: Labels;
  readonly histogram: Histogram;
}

export const PROMETHEUS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** A family without samples is left out. */
export function formatMetrics(families: readonly MetricFamily[]): string {
  return families
    .filter(({ samples }) => samples.length > 0)
    .map(formatFamily)
    .join('');
}

function formatFamily(family: MetricFamily): string {
  const { name, type, help } = family;
  const head = `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`;
  if (family.type === 'histogram') return head + family.samples.map((each) => formatHistogram(name, each)).join('');
  return head + family.samples.map(({ labels, value }) => formatSample(name, labels, value)).join('');
}

/** Buckets are cumulative, and the last one, +Inf, has all values. */
function formatHistogram(name: string, { labels, histogram: { bounds, counts, sum } }: HistogramSample): string {
  let count = 0;
  let text = '';
  for (const [index, inBucket] of counts.entries()) {
    count += inBucket;
    text += formatSample(`${name}_bucket`, { ...labels, le: formatNumber(bounds[index] ?? Infinity) }, count);
  }
  return text + formatSample(`${name}_sum`, labels, sum) + formatSample(`${name}_count`, labels, count);
}

function formatSample(name: string, labels: Labels = {}, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${formatNumber(value)}\n`;
}

function formatNumber(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}
