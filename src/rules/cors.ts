/** Cross-origin resource sharing: which requests of web pages the rules of an account allow, as Microsoft's page on CORS describes it. */

/** Names of headers are literal, or prefixes that end in '*'. */
export interface CorsRule {
  /** Exact origins, 'https://*.example.com' for all below a domain, or '*'. */
  readonly allowedOrigins: readonly string[];
  readonly allowedMethods: readonly string[];
  readonly allowedHeaders: readonly string[];
  readonly exposedHeaders: readonly string[];
  readonly maxAgeSeconds: number;
}

export interface Preflight {
  readonly origin: string;
  readonly method: string;
  readonly headers: readonly string[];
}

/**
 * The rule that allows the announced request. The first rule for its origin and method decides: if that does not allow a header, no later
 * rule does.
 */
export function preflightRule(
  rules: readonly CorsRule[],
  { origin, method, headers }: Preflight,
): CorsRule | undefined {
  const rule = findRule(rules, origin, method);
  return rule && headers.every(makeMatcher(rule.allowedHeaders)) ? rule : undefined;
}

/** The CORS headers of the response to an actual request. */
export interface CorsDecision {
  /** Undefined: no rule allows the origin. */
  readonly rule: CorsRule | undefined;
  readonly origin: '*' | 'request-origin' | 'none';
  /** Whether the response depends on the origin, so that a cache must not share it between origins. */
  readonly varies: boolean;
}

const NOT_SHARED: CorsDecision = { rule: undefined, origin: 'none', varies: false };

/** Also for a request without an origin: a cache may give the response to a request with one. */
export function decideCors(rules: readonly CorsRule[], origin: string | undefined, method: string): CorsDecision {
  if (rules.length === 0) return NOT_SHARED;
  const isCacheable = method === 'GET' || method === 'HEAD';
  if (origin === undefined) {
    if (!isCacheable) return NOT_SHARED;
    const open = rules.find((rule) => allowsAnyOrigin(rule) && rule.allowedMethods.includes(method));
    return open ? { rule: open, origin: '*', varies: false } : { ...NOT_SHARED, varies: true };
  }
  const rule = findRule(rules, origin, method);
  if (!rule) return { ...NOT_SHARED, varies: isCacheable };
  return allowsAnyOrigin(rule)
    ? { rule, origin: '*', varies: false }
    : { rule, origin: 'request-origin', varies: isCacheable };
}

/** Browsers have no prefixes: the sent headers that match a prefix of the rule, and its literal names, sent or not. */
export function exposedNames({ exposedHeaders }: CorsRule, sent: Iterable<string>): string[] {
  const patterns = exposedHeaders.filter((name) => name.endsWith('*'));
  const names = new Map(exposedHeaders.filter((name) => !name.endsWith('*')).map((name) => [name.toLowerCase(), name]));
  const isExposed = makeMatcher(patterns);
  for (const name of sent) if (isExposed(name)) names.set(name.toLowerCase(), name);
  return [...names.values()];
}

export const CORS_METHODS: readonly string[] = ['DELETE', 'GET', 'HEAD', 'MERGE', 'POST', 'OPTIONS', 'PUT', 'PATCH'];

/** Allows everything for pages of these origins. */
export function developmentRule(allowedOrigins: readonly string[]): CorsRule {
  return {
    allowedOrigins,
    allowedMethods: CORS_METHODS,
    allowedHeaders: ['*'],
    exposedHeaders: ['*'],
    maxAgeSeconds: 86_400,
  };
}

function findRule(rules: readonly CorsRule[], origin: string, method: string): CorsRule | undefined {
  return rules.find(
    (rule) =>
      rule.allowedMethods.includes(method) && rule.allowedOrigins.some((allowed) => matchesOrigin(allowed, origin)),
  );
}

function allowsAnyOrigin(rule: CorsRule): boolean {
  return rule.allowedOrigins.includes('*');
}

/** Origins are compared exactly, with their case. */
function matchesOrigin(allowed: string, origin: string): boolean {
  if (allowed === '*' || allowed === origin) return true;
  const star = allowed.indexOf('://*.');
  if (star < 0) return false;
  const scheme = allowed.slice(0, star + 3);
  const domain = allowed.slice(star + 4);
  if (!origin.startsWith(scheme) || !origin.endsWith(domain)) return false;
  const below = origin.slice(scheme.length, origin.length - domain.length);
  return /^[\w-]+(?:\.[\w-]+)*$/.test(below);
}

/** @returns whether one of the patterns matches a name */
function makeMatcher(patterns: readonly string[]): (name: string) => boolean {
  const folded = patterns.map((pattern) => pattern.toLowerCase());
  const exact = new Set(folded);
  const prefixes = folded.filter((pattern) => pattern.endsWith('*')).map((pattern) => pattern.slice(0, -1));
  return (name) => {
    const lower = name.toLowerCase();
    return exact.has(lower) || prefixes.some((prefix) => lower.startsWith(prefix));
  };
}
