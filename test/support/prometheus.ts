/** A strict reader of Prometheus' text form: it throws for everything that the form does not permit, or that we do not promise. */
export interface ReadFamily {
  readonly help: string;
  readonly type: string;
  readonly samples: readonly ReadSample[];
}

export interface ReadSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/s;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/y;
const NUMBER = /^(?:[+-]Inf|NaN|-?\d+(?:\.\d+)?(?:e[+-]\d+)?)$/;

export function readPrometheus(text: string): ReadonlyMap<string, ReadFamily> {
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line has no end');
  const families = new Map<string, ReadFamily>();
  const lines = text.split('\n').slice(0, -1);
  for (let at = 0; at < lines.length; ) {
    const [, name = '', help = ''] = must(/^# HELP (\S+) (.*)$/, lines[at++]!);
    const [, typed = '', type = ''] = must(/^# TYPE (\S+) (counter|gauge|histogram)$/, lines[at++] ?? '');
    if (typed !== name || !NAME.test(name) || families.has(name)) throw new Error(`the head of ${name} is wrong`);
    const samples: ReadSample[] = [];
    while (at < lines.length && !lines[at]!.startsWith('#')) samples.push(readSample(lines[at++]!));
    const family = { help: unescapeText(help, /\\[\\n]/g), type, samples };
    checkFamily(name, family);
    families.set(name, family);
  }
  return families;
}

function must(form: RegExp, line: string): RegExpExecArray {
  const found = form.exec(line);
  if (!found) throw new Error(`not of the form ${form}: ${line}`);
  return found;
}

function readSample(line: string): ReadSample {
  const [, name = '', inBraces = '', number = ''] = must(SAMPLE, line);
  must(NUMBER, number);
  const labels: Record<string, string> = {};
  for (LABEL.lastIndex = 0; LABEL.lastIndex < inBraces.length; ) {
    const [, label = '', value = ''] = LABEL.exec(inBraces) ?? fail(`labels: ${line}`);
    if (label in labels) fail(`a label is there twice: ${line}`);
    labels[label] = unescapeText(value, /\\[\\"n]/g);
  }
  const value = number.endsWith('Inf') ? (number === '-Inf' ? -Infinity : Infinity) : Number(number);
  return { name, labels, value };
}

function unescapeText(text: string, pairs: RegExp): string {
  return text.replace(pairs, (pair) => (pair === '\\n' ? '\n' : pair[1]!));
}

function fail(message: string): never {
  throw new Error(message);
}

function checkFamily(name: string, { type, samples }: ReadFamily): void {
  if (samples.length === 0) fail(`${name} has no samples`);
  const ids = samples.map((sample) => JSON.stringify([sample.name, Object.entries(sample.labels).sort()]));
  if (new Set(ids).size !== ids.length) fail(`${name} has a sample twice`);
  if (type === 'histogram') {
    checkHistograms(name, samples);
    return;
  }
  if (samples.some((sample) => sample.name !== name)) fail(`${name} has samples of another name`);
  if (type === 'counter' && !name.endsWith('_total')) fail(`the counter ${name} does not end with _total`);
  if (type === 'counter' && samples.some(({ value }) => !(value >= 0))) fail(`${name} has gone down`);
}

/** Buckets rise with their bounds and in their counts; the last one, +Inf, is the count. */
function checkHistograms(name: string, samples: readonly ReadSample[]): void {
  const series = new Map<string, ReadSample[]>();
  for (const sample of samples) {
    const { le: _, ...labels } = sample.labels;
    const key = JSON.stringify(Object.entries(labels).sort());
    series.set(key, [...(series.get(key) ?? []), sample]);
  }
  for (const [key, all] of series) {
    const buckets = all.filter((sample) => sample.name === `${name}_bucket`);
    const only = (suffix: string) => all.filter((sample) => sample.name === `${name}_${suffix}`);
    if (only('sum').length !== 1 || only('count').length !== 1 || buckets.length + 2 !== all.length)
      fail(`${name} ${key} has other samples than buckets, a sum and a count`);
    const bounds = buckets.map(({ labels }) => (labels.le === '+Inf' ? Infinity : Number(labels.le)));
    const rises = (numbers: readonly number[], strictly: boolean) =>
      numbers.every((number, i) => i === 0 || number > numbers[i - 1]! || (!strictly && number === numbers[i - 1]));
    if (!rises(bounds, true) || bounds.at(-1) !== Infinity) fail(`the bounds of ${name} ${key} do not rise to +Inf`);
    const counts = buckets.map(({ value }) => value);
    if (!rises(counts, false) || counts.at(-1) !== only('count')[0]!.value)
      fail(`the counts of ${name} ${key} do not rise`);
  }
}
