/** Valid names and keys of accounts: everything that users of the emulator write into AZURITE_ACCOUNTS, not only what Azure accepts. */

/** First segments of paths that no account can have. */
const RESERVED_PATHS = new Set(['health', 'metrics', '_holdfast']);
const ACCOUNT_NAME = /^[A-Za-z0-9_-]{1,63}$/;
const BASE64 =
  /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$|^[A-Za-z0-9+/]{2}==$|^[A-Za-z0-9+/]{3}=$/;

/** In words that can follow a colon. */
export function accountNameFault(name: string): string | undefined {
  if (!ACCOUNT_NAME.test(name)) return 'an account name is 1 to 63 letters, digits, - and _';
  if (RESERVED_PATHS.has(name)) return `${name} is where the server's own endpoints are`;
  if (name.endsWith('-secondary')) return 'the ending -secondary belongs to secondary endpoints';
  return undefined;
}

/** Names a key by its number only: keys are secret. */
export function accountKeysFault(keys: readonly string[]): string | undefined {
  if (keys.length === 0) return 'it has no key';
  if (keys.length > 2) return `it has ${keys.length} keys, and an account has one or two`;
  const wrong = keys.findIndex((key) => !BASE64.test(key));
  return wrong < 0 ? undefined : `key ${wrong + 1} is not base64`;
}
