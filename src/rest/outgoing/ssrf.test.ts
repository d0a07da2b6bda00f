/** Server-side request forgery: what a copy source must not reach, and the ways in which it could be disguised. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import type { StorageError } from '../../services/common/errors.ts';
import { parseCopySource } from '../copy-source.ts';
import type { Request } from '../operation.ts';
import { isReachableByName } from './addresses.ts';
import { parseOrigin, parseWebUrl } from './origins.ts';
import { createRemoteSources } from './remote-client.ts';

/** A service of this machine that no copy may reach; it counts what does. */
let connections = 0;
const secret = createServer((_, response) => void response.writeHead(200, { 'Content-Length': 6 }).end('secret'));
secret.on('connection', () => connections++);
secret.listen(0, '127.0.0.1');
await once(secret, 'listening');
const PORT = (secret.address() as AddressInfo).port;
afterAll(() => void secret.close());

const NAMED = 'http://named.example';

function parse(source: string, copyOrigins: readonly string[]) {
  const headers = { host: 'localhost:10000', 'x-ms-copy-source': source };
  const own = { id: 'id', account: 'mine', secondary: false, secure: false, version: '2021-06-08', base: '/mine' };
  const request: Request = {
    ...{ ...own, readsHosts: true, headers, method: 'PUT', rawPath: '/', rawQuery: '', container: 'c', item: 'to' },
    ...{ query: {}, rawHeaders: [] },
  };
  return parseCopySource(request, {
    service: 'blob',
    serviceAt: () => undefined,
    isAccount: (name) => name === 'mine',
    hostNames: [],
    copyOrigins: new Set(copyOrigins.map((origin) => parseOrigin(origin)!)),
  });
}

/** Tries a source as a request would: parsed, then read. Names lead to the secret service. */
async function outcome(source: string, copyOrigins: readonly string[]): Promise<string> {
  try {
    const parsed = parse(source, copyOrigins);
    if (!('isRemote' in parsed)) return 'this server';
    const origins = new Set(copyOrigins.map((origin) => parseOrigin(origin)!));
    const { open } = createRemoteSources({ origins, resolve: async () => ['127.0.0.1'] });
    const read = await open({ url: parsed.url });
    read.close();
    return 'read';
  } catch (error) {
    return String((error as StorageError).status);
  }
}

/** Each means 127.0.0.1 or something as private, in another disguise. */
const DISGUISES = [
  `http://127.0.0.1:${PORT}/x`,
  `http://127.1:${PORT}/x`,
  `http://127.0.1:${PORT}/x`,
  `http://2130706433:${PORT}/x`,
  `http://0x7f000001:${PORT}/x`,
  `http://0x7f.0x0.0x0.0x1:${PORT}/x`,
  `http://0177.0.0.1:${PORT}/x`,
  `http://017700000001:${PORT}/x`,
  `http://127.0.0.1.:${PORT}/x`,
  `http://0:${PORT}/x`,
  `http://0.0.0.0:${PORT}/x`,
  `http://127.255.255.254:${PORT}/x`,
  `http://[::1]:${PORT}/x`,
  `http://[0:0:0:0:0:0:0:1]:${PORT}/x`,
  `http://[::ffff:127.0.0.1]:${PORT}/x`,
  `http://[::ffff:7f00:1]:${PORT}/x`,
  `http://[::127.0.0.1]:${PORT}/x`,
  `http://[64:ff9b::7f00:1]:${PORT}/x`,
  `http://[2002:7f00:1::]:${PORT}/x`,
  `http://[fe80::1]:${PORT}/x`,
  'http://[fd00:ec2::254]/latest/meta-data/',
  'http://169.254.169.254/latest/meta-data/',
  'http://0xa9fea9fe/latest/meta-data/',
  'http://168.63.129.16/machine',
  'http://10.0.0.1/x',
  'http://192.168.0.1/x',
  `http://localhost:${PORT}/x`,
  `http://LOCALHOST:${PORT}/x`,
  `http://localhost.:${PORT}/x`,
  `http://127.0.0.1.nip.example:${PORT}/x`,
  `http://％31％32％37.0.0.1:${PORT}/x`,
  `http://%31%32%37.0.0.1:${PORT}/x`,
  `http://①②⑦.0.0.1:${PORT}/x`,
  `http://127。0。0。1:${PORT}/x`,
  `http://named.example@127.0.0.1:${PORT}/x`,
  `http://named.example:pass@127.0.0.1:${PORT}/x`,
  `http://127.0.0.1:${PORT}\\@named.example/x`,
  `http://named.example\\@127.0.0.1:${PORT}/x`,
  `http://named.example\t:${PORT}/x`,
  `http://named.example:${PORT}/x`,
  `https://named.example/x`,
  `http://named.example:8080/x`,
  `http://named.example./x`,
  `http://sub.named.example/x`,
  `http://named.example.evil.example/x`,
  `http://evil.example/x?http://named.example/`,
  `http:named.example/x`,
  `//named.example/x`,
  `ftp://named.example/x`,
  `file:///etc/passwd`,
  `gopher://127.0.0.1:${PORT}/x`,
  `unix:///var/run/docker.sock`,
];

describe('A copy source that is not named', () => {
  it('is tried in at least 40 disguises', () => expect(new Set(DISGUISES).size).toBeGreaterThanOrEqual(40));

  it.each(DISGUISES)('is refused without a connection or a look at its name: %s', async (source) => {
    const before = connections;
    const refused = /^40[03]$/;
    expect(await outcome(source, [])).toMatch(refused);
    expect(await outcome(source, [NAMED])).toMatch(refused);
    expect(connections).toBe(before);
  });
});

describe('A named origin', () => {
  const named = (origin: string, resolve: (name: string) => Promise<readonly string[]>) =>
    createRemoteSources({ origins: new Set([origin]), resolve });

  it('is read at the address that it is named by, in whatever form', async () => {
    for (const origin of [`http://127.0.0.1:${PORT}`, `http://0x7f000001:${PORT}`])
      expect(await outcome(`http://127.0.0.1:${PORT}/x`, [origin])).toBe('read');
    expect(await outcome(`http://localhost:${PORT}/x`, [`http://localhost:${PORT}`])).toBe('read');
  });

  it.each([
    '127.0.0.1',
    '127.8.8.8',
    '0.0.0.0',
    '169.254.169.254',
    '168.63.129.16',
    '100.100.100.200',
    '192.0.0.192',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:a9fe:a9fe',
    '64:ff9b::7f00:1',
    '64:ff9b::169.254.169.254',
    '64:ff9b:1::1',
    '2002:7f00:1::',
    '2001:0:7f00:1::',
    'fe80::1',
    'fe80::1%eth0',
    'ff02::1',
    'fd00:ec2::254',
    'not an address',
  ])('is refused if its name leads to %s', async (address) => {
    expect(isReachableByName(address)).toBe(false);
    const before = connections;
    const { open } = named(`http://named.example:${PORT}`, async () => ['93.184.216.34', address]);
    await expect(open({ url: `http://named.example:${PORT}/x` })).rejects.toMatchObject({ status: 403 });
    expect(connections).toBe(before);
  });

  it.each([
    '93.184.216.34',
    '10.0.0.1',
    '172.18.0.2',
    '192.168.1.1',
    '2606:2800:220:1::1',
    'fd12::1',
    '64:ff9b::5db8:d822',
  ])('may lead to %s', (address) => expect(isReachableByName(address)).toBe(true));

  it('is looked up once: a name that changes between check and use is used as it was checked', async () => {
    let [lookups, reached] = [0, ''];
    const checked = createTcpServer((socket) => {
      reached += 'checked';
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(checked, 'listening');
    const { port } = checked.address() as AddressInfo;
    // Only localhost may lead to an address that a test can listen on.
    const { open } = named(`http://a.localhost:${port}`, async () => (lookups++ === 0 ? ['127.0.0.1'] : ['127.0.0.9']));
    await expect(open({ url: `http://a.localhost:${port}/x` })).rejects.toMatchObject({ status: 502 });
    expect([lookups, reached]).toEqual([1, 'checked']);
    checked.close();
  });

  it('is not left by a redirect', async () => {
    const before = connections;
    const redirecting = createServer((_, response) => {
      response.writeHead(307, { Location: `http://127.0.0.1:${PORT}/x` }).end();
    }).listen(0, '127.0.0.1');
    await once(redirecting, 'listening');
    const origin = `http://127.0.0.1:${(redirecting.address() as AddressInfo).port}`;
    const { open } = named(origin, async () => []);
    await expect(open({ url: `${origin}/x` })).rejects.toMatchObject({ status: 307 });
    expect(connections).toBe(before);
    redirecting.close();
  });

  it('times out if it does not answer, and if its bytes stop', async () => {
    const silent = createTcpServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', (head) => {
        if (head.toString().includes('/half')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf');
      });
    }).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const origin = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const { open } = createRemoteSources({ origins: new Set([origin]), answerMilliseconds: 50, idleMilliseconds: 50 });
    await expect(open({ url: `${origin}/none` })).rejects.toMatchObject({ status: 500, code: 'OperationTimedOut' });
    const read = await open({ url: `${origin}/half` });
    const reading = (async () => {
      for await (const _ of read.bytes());
    })();
    await expect(reading).rejects.toMatchObject({ status: 502 });
    silent.close();
  });

  it('has a URL that says one thing only', () => {
    for (const text of ['http://a b/', 'http://a\\b/', 'http://a@b/', 'http://a\tb/', 'javascript:x', 'http://', ''])
      expect(parseWebUrl(text), text).toBeUndefined();
    for (const text of ['http://a/b', 'http://a?b', 'http://a#b', 'a', 'http://u@a'])
      expect(parseOrigin(text), text).toBeUndefined();
    expect(parseOrigin('HTTP://Exämple.com:80/')).toBe('http://xn--exmple-cua.com');
  });
});
