/** The origins that copies may read from: scheme, host and port, compared in the one form that a URL has. */

/** Undefined unless the text is the origin of a web server, and nothing else. */
export function parseOrigin(text: string): string | undefined {
  const url = parseWebUrl(text);
  return url && /^[^/]*\/\/[^/?#]+\/?$/.test(text) ? url.origin : undefined;
}

/**
 * Undefined if the text is not a URL of a web server, or has credentials, or characters that a URL parser would pass over: what is
 * compared, shown and connected to is then not the same.
 */
export function parseWebUrl(text: string): URL | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (!/^https?:\/\/[^/\\@?#]+(?:[/?#]|$)/i.test(text) || /[\x00-\x20\\\x7f]/.test(text) || !URL.canParse(text))
    return undefined;
  return new URL(text);
}
