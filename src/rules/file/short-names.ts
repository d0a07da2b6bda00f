/**
 * Names of 8.3 characters, for programs that know no others (MS-FSCC 2.1.5.2.1). A name that is one itself has no second one. Any other gets the
 * number of its node, in base 36, as `00K3V9~F.0XQ`: it is unique, stays through renames, and leads to the node without a search.
 */
const CHARACTER = "[A-Z0-9!#$%&'()\\-@^_`{}~]";
const SHORT = new RegExp(`^${CHARACTER}{1,8}(?:\\.${CHARACTER}{1,3})?$`, 'i');
const NUMBERED = /^([0-9A-Z]{6})~([0-9A-Z])\.([0-9A-Z]{3})$/;
const BASE = 36;
const DIGITS = 10;

const isShort = (name: string): boolean => SHORT.test(name);

/** Undefined: the name is short itself, or its number is too great. */
export function formatShortName(name: string, number: bigint): string | undefined {
  if (isShort(name) || number < 0n) return undefined;
  const digits = number.toString(BASE).toUpperCase().padStart(DIGITS, '0');
  return digits.length > DIGITS ? undefined : `${digits.slice(0, 6)}~${digits[6]}.${digits.slice(7)}`;
}

/** The number in a name of this form, folded; undefined: it has another. */
export function parseShortName(folded: string): bigint | undefined {
  const [, ...parts] = NUMBERED.exec(folded) ?? [];
  if (parts.length === 0) return undefined;
  let number = 0n;
  for (const digit of parts.join('')) number = number * BigInt(BASE) + BigInt(Number.parseInt(digit, BASE));
  return number;
}
