/** What is worked out from texts that come again and again: names, headers. */
const TEXTS_MAX = 1_000;
const TEXT_LENGTH_MAX = 512;

/** The same function, which remembers what it gave for short texts. It must give the same again, or throw again. */
export function kept<Value>(make: (text: string) => Value): (text: string) => Value {
  const values = new Map<string, Value>();
  return (text) => {
    const known = values.get(text);
    if (known !== undefined) return known;
    const value = make(text);
    if (text.length > TEXT_LENGTH_MAX) return value;
    if (values.size >= TEXTS_MAX) values.clear();
    values.set(ownTextOf(text), value);
    return value;
  };
}

/** A text that was cut from another keeps all of that in memory. Of ASCII it makes text with one byte a character, as it should be. */
export function ownTextOf(text: string): string {
  const own = Buffer.from(text).toString();
  return own === text ? own : Buffer.from(text, 'utf16le').toString('utf16le');
}
