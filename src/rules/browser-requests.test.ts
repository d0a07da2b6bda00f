import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isCrossSite, isForbiddenWrite, isFromBrowser, isRebound, type PageHeaders } from './browser-requests.ts';
import { type CorsRule, developmentRule } from './cors.ts';

const known = { isAccount: (name: string) => name === 'mine', names: ['storage.example.com', 'box.corp.example'] };

/** Each page is of another origin, and of the host's own. */
const hosts: [host: string | undefined, ofOther: 'taken' | 'refused', ofItself: 'taken' | 'refused'][] = [
  [undefined, 'taken', 'taken'],
  ['localhost', 'taken', 'taken'],
  ['localhost:10000', 'taken', 'taken'],
  ['LOCALHOST.:10000', 'taken', 'taken'],
  ['azurite:10000', 'taken', 'taken'],
  ['my-machine', 'taken', 'taken'],
  ['127.0.0.1:10000', 'taken', 'taken'],
  ['192.168.1.255', 'taken', 'taken'],
  ['[::1]:10000', 'taken', 'taken'],
  ['[fe80::1]', 'taken', 'taken'],
  ['mine.blob.localhost:10000', 'taken', 'taken'],
  ['anything.localhost', 'taken', 'taken'],
  ['mine.blob.core.windows.net', 'taken', 'taken'],
  ['Mine-Secondary.Queue.Core.Windows.Net:10001', 'taken', 'taken'],
  ['mine.table.core.usgovcloudapi.net', 'taken', 'taken'],
  ['storage.example.com:10000', 'taken', 'taken'],
  ['Box.corp.example', 'taken', 'taken'],
  ['mine.storage.example', 'taken', 'refused'],
  ['mine-secondary.evil.example:10000', 'taken', 'refused'],
  ['mine.blob.core.windows.net.evil.example', 'taken', 'refused'],
  ['other.blob.core.windows.net', 'refused', 'refused'],
  ['evil.example', 'refused', 'refused'],
  ['evil.example.:10000', 'refused', 'refused'],
  ['evil.example:', 'refused', 'refused'],
  ['localhost.evil.example', 'refused', 'refused'],
  ['localhost.com', 'refused', 'refused'],
  ['notlocalhost.xlocalhost', 'refused', 'refused'],
  ['127.0.0.1.nip.io', 'refused', 'refused'],
  ['127.0.0.256', 'refused', 'refused'],
  ['1.2.3', 'refused', 'refused'],
  ['1.2.3.4.5', 'refused', 'refused'],
  ['below.storage.example.com', 'refused', 'refused'],
  ['storage.example.com.evil.example', 'refused', 'refused'],
];

describe('The host by which a web page asks', () => {
  it.each(hosts)('%s: a page of another origin is %s, one of its own %s', (host, ofOther, ofItself) => {
    const verdict = (headers: PageHeaders) => (isRebound({ host, ...headers }, known) ? 'refused' : 'taken');
    expect(verdict({ origin: 'http://page.example' })).toBe(ofOther);
    expect(verdict({ origin: 'null' })).toBe(ofOther);
    expect(verdict({ 'sec-fetch-site': 'cross-site' })).toBe(ofOther);
    if (host !== undefined) expect(verdict({ origin: `http://${host.toLowerCase()}` })).toBe(ofItself);
    expect(verdict({ 'sec-fetch-site': 'same-origin' })).toBe(ofItself);
    expect(verdict({})).toBe('taken');
    // As Node's fetch says.
    expect(verdict({ 'sec-fetch-mode': 'cors' })).toBe('taken');
  });

  it('is never required of other programs', () => {
    fc.assert(fc.property(fc.domain(), (host) => !isRebound({ host, 'x-ms-version': '2025-07-05' }, known)));
  });

  it('is refused wherever its name could be registered', () => {
    const label = fc.constantFrom('mine', 'mine-secondary', 'blob', 'www');
    fc.assert(
      fc.property(label, fc.domain(), (first, domain) => {
        const host = `${first}.${domain}`;
        fc.pre(!known.names.includes(host));
        expect(isRebound({ host, origin: `http://${host}` }, known)).toBe(true);
      }),
    );
  });
});

const rules = developmentRule(['https://page.example']);
const everyone: CorsRule = { ...developmentRule(['*']), allowedMethods: ['POST', 'GET'] };
const page = { host: 'localhost:10001', origin: 'https://evil.example' };

// biome-ignore format: a table
const writes: [what: string, method: string, headers: PageHeaders, allowed: readonly CorsRule[], forbidden: boolean][] = [
  ['a form', 'POST', { ...page, 'content-type': 'application/x-www-form-urlencoded' }, [], true],
  ['a form with files', 'POST', { ...page, 'content-type': 'multipart/form-data; boundary=x' }, [], true],
  ['plain text', 'POST', { ...page, 'content-type': 'Text/Plain;charset=UTF-8' }, [], true],
  ['a body without a type', 'POST', page, [], true],
  ['a GET that changes something', 'GET', page, [], true],
  ['a sandboxed page', 'POST', { ...page, origin: 'null' }, [], true],
  ['an image', 'GET', { host: page.host, 'sec-fetch-site': 'cross-site' }, [], true],
  ['another port of this machine', 'GET', { host: page.host, 'sec-fetch-site': 'same-site' }, [], true],
  ['a rule for others', 'POST', page, [rules], true],
  ['a rule for other methods', 'POST', page, [{ ...everyone, allowedMethods: ['PUT'] }], true],
  ['a rule for the origin', 'POST', { ...page, origin: 'https://page.example' }, [rules], false],
  ['a rule for everyone', 'POST', page, [everyone], false],
  ['a rule for everyone, and an origin that is not told', 'GET', { host: page.host, 'sec-fetch-site': 'cross-site' }, [everyone], false],
  ['a request that was announced by its method', 'PUT', page, [], false],
  ['a request that was announced by its type', 'POST', { ...page, 'content-type': 'application/json' }, [], false],
  ['a request that was announced by its headers', 'POST', { ...page, 'x-ms-version': '2025-07-05' }, [], false],
  ['a request that was announced by its key', 'POST', { ...page, authorization: 'SharedKey a:b' }, [], false],
  ["the server's own page", 'POST', { ...page, origin: 'http://localhost:10001' }, [], false],
  ["the server's own page, by what the browser says", 'GET', { host: page.host, 'sec-fetch-site': 'same-origin' }, [], false],
  ['the user of the browser', 'GET', { host: page.host, 'sec-fetch-site': 'none' }, [], false],
  ['another program', 'POST', { host: page.host, 'content-type': 'text/plain' }, [], false],
  ["Node's fetch", 'POST', { host: page.host, 'content-type': 'text/plain', 'sec-fetch-mode': 'cors' }, [], false],
];

describe('A write of a web page', () => {
  it.each(writes)('by %s (%s)', (_, method, headers, allowed, forbidden) => {
    expect(isForbiddenWrite(method, headers, allowed)).toBe(forbidden);
    if (forbidden) expect(isFromBrowser(headers)).toBe(true);
  });

  it('is never forbidden without the headers of a browser', () => {
    const headers = fc.dictionary(fc.constantFrom('content-type', 'host', 'accept', 'x-ms-date'), fc.string());
    fc.assert(fc.property(fc.constantFrom('GET', 'POST', 'PUT'), headers, (m, all) => !isForbiddenWrite(m, all, [])));
  });
});

describe('A page of another site', () => {
  it.each([
    [{ 'sec-fetch-site': 'cross-site' }, true],
    [{ 'sec-fetch-site': 'same-site' }, true],
    [{ 'sec-fetch-site': 'nonsense' }, true],
    [{ 'sec-fetch-site': 'same-origin' }, false],
    [{ 'sec-fetch-site': 'none' }, false],
    [{ host: 'localhost:1', origin: 'http://localhost:1' }, false],
    [{ host: 'localhost:1', origin: 'http://localhost:2' }, true],
    [{ host: 'localhost:1', origin: 'null' }, true],
    [{}, false],
  ] satisfies [PageHeaders, boolean][])('%j: %s', (headers, isOther) => {
    expect(isCrossSite(headers)).toBe(isOther);
  });
});
