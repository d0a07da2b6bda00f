/** Fields of a record as lines of text, in a fixed order. Splitting lines costs a third of parsing JSON. */

/** The line of a field that is present and empty. */
const EMPTY = '\0';

/** Empty lines at the end are left out. */
export function joinLines(fields: readonly (string | undefined)[]): string {
  let end = fields.length;
  while (end > 0 && !fields[end - 1]) end--;
  return `${fields.slice(0, end).join('\n')}\n`;
}

export function formatLine(text: string | undefined): string {
  if (text === undefined) return '';
  // No HTTP header contains a line feed: one here is a bug.
  if (text.includes('\n')) throw new Error('a field of a record has two lines');
  return text === '' ? EMPTY : text;
}

/** Twice as fast as `split`. */
export function splitLines(text: string): string[] {
  const lines: string[] = [];
  let from = 0;
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
    lines.push(text.slice(from, end));
    from = end + 1;
  }
  if (from < text.length) throw new Error('a record without its end');
  return lines;
}

/** The lines after the last present field are left out. */
export function parseLine(line: string | undefined): string | undefined {
  if (!line) return undefined;
  return line === EMPTY ? '' : line;
}
