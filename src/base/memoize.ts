/** What is worked out from texts that come again and again: names, headers. */
const TEXTS_MAX = 1_000;
const TEXT_LENGTH_MAX = 512;

/**
 * The same function, which remembers what it gave for short texts. It must give the same again, or throw again.
 * Eviction by two generations: a text that is used while a generation fills lives on in the next one, so that a flood of new
 * texts does not evict those in use.
 */
export function memoize<Value>(compute: (text: string) => Value): (text: string) => Value {
  let young = new Map<string, Value>();
  let old = new Map<string, Value>();

  function remember(text: string, value: Value): Value {
    if (young.size >= TEXTS_MAX) {
      old = young;
      young = new Map();
    }
    young.set(text, value);
    return value;
  }

  return (text) => {
    const known = young.get(text);
    if (known !== undefined) return known;
    const aged = old.get(text);
    if (aged !== undefined) return remember(copyString(text), aged);
    const value = compute(text);
    return text.length > TEXT_LENGTH_MAX ? value : remember(copyString(text), value);
  };
}

/** A text that was cut from another keeps all of that in memory. Of ASCII it makes text with one byte a character, as it should be. */
export function copyString(text: string): string {
  const own = Buffer.from(text).toString();
  return own === text ? own : Buffer.from(text, 'utf16le').toString('utf16le');
}
