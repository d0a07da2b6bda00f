/** Memoization of functions of short texts that come often, such as names and headers, with two-generation eviction. */
const TEXTS_MAX = 1_000;
const TEXT_LENGTH_MAX = 512;

/**
 * `compute` must be pure. A text that is used while a generation fills is moved to the next one, so that many new texts do not evict those
 * in use.
 * @param lengthMax of the texts that come often
 */
export function memoize<Value>(compute: (text: string) => Value, lengthMax = TEXT_LENGTH_MAX): (text: string) => Value {
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
    if (text.length > lengthMax) return compute(text);
    const known = young.get(text);
    if (known !== undefined) return known;
    const aged = old.get(text);
    if (aged !== undefined) return remember(copyString(text), aged);
    return remember(copyString(text), compute(text));
  };
}

/** A copy that does not keep a longer text in memory, from which this one was cut. ASCII text takes one byte per character. */
export function copyString(text: string): string {
  const own = Buffer.from(text).toString();
  return own === text ? own : Buffer.from(text, 'utf16le').toString('utf16le');
}
