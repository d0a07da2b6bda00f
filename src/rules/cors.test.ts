import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CorsRule, decideCors, developmentRule, exposedNames, preflightRule } from './cors.ts';

const rule = (origins: string, methods: string, headers = '', exposed = '', maxAgeSeconds = 5): CorsRule => {
  const list = (text: string) => text.split(' ').filter((part) => part !== '');
  return {
    allowedOrigins: list(origins),
    allowedMethods: list(methods),
    allowedHeaders: list(headers),
    exposedHeaders: list(exposed),
    maxAgeSeconds,
  };
};

describe('A preflight', () => {
  const content = 'x-ms-blob-content-type x-ms-blob-content-disposition';
  const first = rule('http://www.contoso.com', 'PUT HEAD', content);
  const second = rule('*', 'PUT GET', content);
  const third = rule('http://www.contoso.com', 'GET', 'x-ms-client-request-id');
  const rules = [first, second, third];
  const ask = (method: string, origin: string, ...headers: string[]) =>
    preflightRule(rules, { origin, method, headers });

  it('is decided by the first rule for its origin and method', () => {
    expect(ask('PUT', 'http://www.contoso.com', 'x-ms-blob-content-type')).toBe(first);
    expect(ask('GET', 'http://www.contoso.com', 'x-ms-blob-content-type')).toBe(second);
  });

  it('fails on a header that this rule does not allow, even if a later one does', () => {
    expect(ask('GET', 'http://www.contoso.com', 'x-ms-client-request-id')).toBeUndefined();
  });

  it('fails where no rule has its method or its origin', () => {
    expect(ask('DELETE', 'http://www.contoso.com')).toBeUndefined();
    expect(ask('HEAD', 'http://www.fabrikam.com')).toBeUndefined();
    expect(preflightRule([], { origin: 'http://www.contoso.com', method: 'GET', headers: [] })).toBeUndefined();
  });

  const names: [allowed: string, sent: string, passes: boolean][] = [
    ['x-ms-meta-target', 'x-ms-meta-target', true],
    ['x-ms-meta-target', 'X-MS-Meta-Target', true],
    ['X-MS-Meta-Target', 'x-ms-meta-target', true],
    ['x-ms-meta-target', 'x-ms-meta-target2', false],
    ['x-ms-meta*', 'x-ms-meta-target', true],
    ['x-ms-meta*', 'X-Ms-METADATA', true],
    ['x-ms-meta*', 'x-ms-met', false],
    ['x-ms-meta*', 'a-x-ms-meta', false],
    ['*', 'anything', true],
    ['', 'anything', false],
  ];
  it.each(names)('with "%s" allowed and %s announced: %s', (allowed, sent, passes) => {
    const found = preflightRule([rule('*', 'GET', allowed)], { origin: 'a', method: 'GET', headers: [sent] });
    expect(found !== undefined).toBe(passes);
  });

  const origins: [allowed: string, origin: string, passes: boolean][] = [
    ['http://www.contoso.com', 'http://www.contoso.com', true],
    ['http://www.contoso.com', 'http://WWW.contoso.com', false],
    ['http://www.contoso.com', 'https://www.contoso.com', false],
    ['http://www.contoso.com', 'http://www.contoso.com:80', false],
    ['www.contoso.com', 'http://www.contoso.com', false],
    ['*', 'null', true],
    ['https://*.contoso.com', 'https://www.contoso.com', true],
    ['https://*.contoso.com', 'https://a.b.contoso.com', true],
    ['https://*.contoso.com', 'https://contoso.com', false],
    ['https://*.contoso.com', 'https://.contoso.com', false],
    ['https://*.contoso.com', 'http://www.contoso.com', false],
    ['https://*.contoso.com', 'https://www.contoso.com.evil.com', false],
    ['https://*.contoso.com', 'https://evil.com/x.contoso.com', false],
    ['https://*.contoso.com', 'https://evil.com@x.contoso.com', false],
    ['https://*.contoso.com', 'https://evilcontoso.com', false],
    ['https://*.contoso.com:8080', 'https://www.contoso.com:8080', true],
    ['https://*.contoso.com:8080', 'https://www.contoso.com', false],
  ];
  it.each(origins)('with origins %s and one from %s: %s', (allowed, origin, passes) => {
    expect(preflightRule([rule(allowed, 'GET')], { origin, method: 'GET', headers: [] }) !== undefined).toBe(passes);
  });

  it('is judged as a naive reading of the rules has it', () => {
    const origin = fc.constantFrom('a', 'b', 'c');
    const method = fc.constantFrom('GET', 'PUT');
    const header = fc.constantFrom('x-one', 'x-two', 'y');
    const pattern = fc.constantFrom<string>('x-one', 'x-two', 'x-*', '*', 'y');
    const some = fc.record({
      allowedOrigins: fc.array(fc.constantFrom<string>('a', 'b', '*'), { minLength: 1, maxLength: 2 }),
      allowedMethods: fc.array(method, { minLength: 1, maxLength: 2 }),
      allowedHeaders: fc.array(pattern, { maxLength: 2 }),
      exposedHeaders: fc.constant([]),
      maxAgeSeconds: fc.constant(1),
    });
    const asked = fc.record({ origin, method, headers: fc.array(header, { maxLength: 2 }) });
    fc.assert(
      fc.property(fc.array(some, { maxLength: 5 }), asked, (rules, wanted) => {
        let expected: CorsRule | undefined;
        for (const one of rules) {
          const here = one.allowedOrigins.includes('*') || one.allowedOrigins.includes(wanted.origin);
          if (!here || !one.allowedMethods.includes(wanted.method)) continue;
          const unknown = wanted.headers.filter((name) => {
            const { allowedHeaders } = one;
            if (allowedHeaders.includes('*') || allowedHeaders.includes(name)) return false;
            return !(name.startsWith('x-') && allowedHeaders.includes('x-*'));
          });
          if (unknown.length === 0) expected = one;
          break;
        }
        expect(preflightRule(rules, wanted)).toBe(expected);
      }),
    );
  });
});

describe('The answer to an actual request', () => {
  const exact = rule('http://one', 'GET HEAD PUT');
  const open = rule('*', 'GET PUT');
  const cells: [rules: CorsRule[], origin: string | undefined, method: string, shared: string, varies: boolean][] = [
    [[], undefined, 'GET', 'none', false],
    [[exact], undefined, 'GET', 'none', true],
    [[open], undefined, 'GET', '*', false],
    [[exact, open], undefined, 'GET', '*', false],
    [[open], undefined, 'HEAD', 'none', true],
    [[exact], undefined, 'PUT', 'none', false],
    [[open], undefined, 'PUT', 'none', false],
    [[], 'http://one', 'GET', 'none', false],
    [[exact], 'http://one', 'GET', 'request-origin', true],
    [[exact], 'http://one', 'HEAD', 'request-origin', true],
    [[exact], 'http://one', 'PUT', 'request-origin', false],
    [[exact], 'http://two', 'GET', 'none', true],
    [[exact], 'http://two', 'PUT', 'none', false],
    [[exact], 'http://one', 'DELETE', 'none', false],
    [[open], 'http://two', 'GET', '*', false],
    [[open], 'http://two', 'PUT', '*', false],
    [[exact, open], 'http://one', 'GET', 'request-origin', true],
    [[open, exact], 'http://one', 'GET', '*', false],
    [[rule('http://*.one', 'GET')], 'http://a.one', 'GET', 'request-origin', true],
  ];
  it.each(cells)('%j from %s by %s is shared with %s, varies: %s', (rules, origin, method, shared, varies) => {
    const sharing = decideCors(rules, origin, method);
    expect([sharing.origin, sharing.varies]).toEqual([shared, varies]);
    expect(sharing.rule === undefined).toBe(shared === 'none');
  });

  it('exposes literal names always, and names with a listed prefix if they are sent', () => {
    const sent = ['ETag', 'x-ms-meta-One', 'x-ms-meta-two', 'Date'];
    const some = rule('*', 'GET', '', 'x-ms-none X-MS-META-* etag');
    expect(exposedNames(some, sent)).toEqual(['x-ms-none', 'etag', 'x-ms-meta-One', 'x-ms-meta-two']);
    expect(exposedNames(rule('*', 'GET', '', '*'), sent)).toEqual(sent);
    expect(exposedNames(rule('*', 'GET'), sent)).toEqual([]);
  });
});

describe('The rule for development', () => {
  it('allows everything from the origins that are named', () => {
    const some = developmentRule(['http://localhost:3000', 'http://localhost:5173']);
    const asked = { origin: 'http://localhost:5173', method: 'PATCH', headers: ['x-any'] };
    expect(preflightRule([some], asked)).toBe(some);
    expect(preflightRule([some], { ...asked, origin: 'http://localhost:80' })).toBeUndefined();
    const all = developmentRule(['*']);
    expect(preflightRule([all], { ...asked, origin: 'null', method: 'DELETE' })).toBe(all);
    expect(all.maxAgeSeconds).toBe(86_400);
  });
});
