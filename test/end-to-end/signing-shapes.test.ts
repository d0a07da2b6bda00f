import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { accountSas, authorizationFor, type Scheme, type Sending, serviceSas } from '../support/signing.ts';
import { account, accountKey, type Running, serverFor, version } from '../support/test-server.ts';
import { type SigningShape, sasNames, signingShapes } from '../truth-tables/signing-shapes.ts';

const running = serverFor('memory');
const signer = { account, key: accountKey };
const sasOf = (letters: string) => ({ sv: '2021-06-08', sp: letters, se: '2099-01-01' });

describe.each(['SharedKey', 'SharedKeyLite'] as const)('%s', (scheme) => {
  describe.each(['path', 'query', 'header'] as const)('with %s shapes', (part) => {
    it.each(signingShapes[part])('is understood with $what', async (shape) => {
      const status = await statusOf(shape, scheme);
      if (shape.refused) expect(status).toBe(shape.refused.status);
      else expect([0, 401, 403, 500]).not.toContain(status);
    });

    it.each(signingShapes[part])('is refused when a bit is flipped, with $what', async (shape) => {
      const expected = shape.refused?.status ?? 403;
      expect(await statusOf(shape, scheme, flipped)).toBe(expected);
      // The request is changed after it was signed.
      expect(await statusOf(shape, scheme, undefined, ['x-ms-meta-z', 'added'])).toBe(expected);
    });
  });
});

describe('a SAS', () => {
  it.each(sasNames)('for the blob %j opens it as %s, and no other', async (name, path) => {
    const token = serviceSas({ ...sasOf('r'), sr: 'b' }, `shapes/${name}`, signer);
    expect(await plainStatus(`/shapes/${path}?${token}`)).toBe(404);
    expect(await plainStatus(`/shapes/${path}x?${token}`)).toBe(403);
    expect(await plainStatus(`/shapes/${path}?${token.replace('sp=r', 'sp=rw')}`)).toBe(403);
  });

  it.each(sasNames)('for the snapshot of %j opens that only, as %s', async (name, path) => {
    const moment = '2024-01-02T03:04:05.1234567Z';
    const token = serviceSas({ ...sasOf('r'), sr: 'bs', moment }, `shapes/${name}`, signer);
    expect([401, 403, 500]).not.toContain(await plainStatus(`/shapes/${path}?snapshot=${moment}&${token}`));
    expect(await plainStatus(`/shapes/${path}?snapshot=2024-01-02T03:04:05.1234568Z&${token}`)).toBe(403);
    expect(await plainStatus(`/shapes/${path}?${token}`)).toBe(403);
  });

  it.each(sasNames)('for the container or the account opens %j, as %s', async (_, path) => {
    const ofContainer = serviceSas({ ...sasOf('r'), sr: 'c' }, 'shapes', signer);
    const ofAccount = accountSas({ ...sasOf('r'), ss: 'b', srt: 'o' }, signer);
    for (const token of [ofContainer, ofAccount]) expect(await plainStatus(`/shapes/${path}?${token}`)).toBe(404);
    expect(await plainStatus(`/other/${path}?${ofContainer}`)).toBe(403);
    const flippedToken = ofAccount.replace(/sig=(.)/, (_all, first: string) => `sig=${first === 'A' ? 'B' : 'A'}`);
    expect(await plainStatus(`/shapes/${path}?${flippedToken}`)).toBe(403);
  });
});

describe('the table', () => {
  it('has at least 60 shapes, each of them once', () => {
    const all = Object.entries(signingShapes).flatMap(([part, shapes]) => shapes.map(({ what }) => `${part}: ${what}`));
    expect(new Set(all).size).toBe(all.length);
    expect(all.length).toBeGreaterThanOrEqual(60);
  });
});

type Header = readonly [name: string, value: string];

async function statusOf(shape: SigningShape, scheme: Scheme, change = (value: string) => value, added?: Header) {
  const date: Header[] =
    shape.dated === 'Date' ? [['Date', new Date().toUTCString()]] : [['x-ms-date', new Date().toUTCString()]];
  if (shape.dated === 'both') date.push(['Date', 'Wed, 01 May 2019 10:20:30 GMT']);
  const sending: Sending = {
    method: shape.method ?? 'GET',
    target: `/${account}${shape.path}`,
    headers: [['Host', 'localhost'], ['x-ms-version', version], ...date, ...(shape.headers ?? [])],
  };
  const authorization = authorizationFor(scheme, sending, {
    ...signer,
    encoding: shape.signedAsUtf8 ? 'utf8' : 'latin1',
  });
  const headers: Header[] = [...sending.headers, ['Authorization', change(authorization)], ...(added ? [added] : [])];
  return exchanged(running, { ...sending, headers }, shape.body);
}

function plainStatus(path: string): Promise<number> {
  const headers: Header[] = [
    ['Host', 'localhost'],
    ['x-ms-version', version],
  ];
  return exchanged(running, { method: 'GET', target: `/${account}${path}`, headers });
}

/** Sends bytes and returns the status of the answer; 0: the connection was closed without one. */
async function exchanged({ socket: open }: Running, { method, target, headers }: Sending, body = ''): Promise<number> {
  const socket = open();
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1');
  });
  socket.on('error', () => {});
  const lines = [...headers, ['Connection', 'close'] as const].map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.write(Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines}\r\n${body}`, 'latin1'));
  await once(socket, 'close');
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1] ?? 0);
}

/** The first bit of the signature is another one. */
function flipped(authorization: string): string {
  const at = authorization.indexOf(':') + 1;
  const bytes = Buffer.from(authorization.slice(at), 'base64');
  bytes[0]! ^= 0x80;
  return authorization.slice(0, at) + bytes.toString('base64');
}
