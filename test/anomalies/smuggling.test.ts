/** Requests that a proxy could parse differently than the server, each followed by a signed Delete Blob. */
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { serverFor } from '../support/test-server.ts';
import { smuggling, unambiguous, upgrades } from '../truth-tables/smuggling.ts';

const running = serverFor('memory');

interface Outcome {
  readonly statuses: readonly number[];
  readonly text: string;
  readonly deleted: boolean;
}

/** Ends when the server closes the connection, or with the answer to the second request. */
async function outcomeOf(bytes: string, pieces = 1): Promise<Outcome> {
  const container = await running.newContainer();
  const path = `/${container.containerName}/victim`;
  const put = await running.request('PUT', path, { headers: { 'x-ms-blob-type': 'BlockBlob' }, body: 'content' });
  expect(put.status).toBe(201);
  const socket = running.socket();
  let text = '';
  const ended = new Promise<void>((resolve) => {
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk;
      if (text.includes('HTTP/1.1 202')) resolve();
    });
    socket.on('close', () => resolve());
  });
  socket.on('error', () => {});
  const all = Buffer.from(bytes + running.head('DELETE', path, {}), 'latin1');
  await once(socket, 'connect');
  for (let at = 0; at < pieces; at++) {
    socket.write(all.subarray((all.length * at) / pieces, (all.length * (at + 1)) / pieces));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await ended;
  socket.destroy();
  const { status } = await running.request('HEAD', path);
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, code]) => Number(code));
  return { statuses, text, deleted: status === 404 };
}

describe('A request that can be read in two ways', () => {
  it('is one of many, those that the parser refuses and those that it does not', () => {
    expect(smuggling.length).toBeGreaterThanOrEqual(50);
    expect(new Set(smuggling.map(({ name }) => name)).size).toBe(smuggling.length);
  });

  it.concurrent.each(smuggling)(
    'is refused with $status, and nothing behind it is run: $name',
    async ({ bytes, status }) => {
      for (const pieces of [1, 7]) {
        const { statuses, deleted, text } = await outcomeOf(bytes, pieces);
        expect({ statuses, deleted }).toEqual({
          statuses: [expect.toSatisfy((code) => [status].flat().includes(code))],
          deleted: false,
        });
        expect(text).toMatch(/^Connection: close\r$/im);
      }
    },
  );
});

describe('A request that is odd and can be read in one way only', () => {
  it.concurrent.each(Object.entries(unambiguous))(
    'is answered, and so is the one behind it: %s',
    async (_name, bytes) => {
      const { statuses, deleted } = await outcomeOf(bytes);
      expect(statuses).toEqual([expect.toSatisfy((status) => status === 200 || status === 204), 202]);
      expect(deleted).toBe(true);
    },
  );
});

describe('A request for an upgrade', () => {
  it.concurrent.each(Object.entries(upgrades))(
    'is answered without it, and nothing behind it is run: %s',
    async (_name, bytes) => {
      const { statuses, deleted, text } = await outcomeOf(bytes);
      expect(statuses).toEqual([expect.toSatisfy((status) => status === 200 || status === 204)]);
      expect(text).toMatch(/^Connection: close\r$/im);
      expect(deleted).toBe(false);
    },
  );
});

describe('Bytes that are no request', () => {
  it('are answered after the requests before them, in order', async () => {
    const before = running.head('GET', '/?comp=list', {});
    const { statuses, deleted } = await outcomeOf(`${before}${before}nonsense\r\n\r\n`);
    expect({ statuses, deleted }).toEqual({ statuses: [200, 200, 400], deleted: false });
  });

  it('leave the request before them its answer, when that asked to be the last', async () => {
    const { statuses } = await outcomeOf(running.head('GET', '/?comp=list', { Connection: 'close' }));
    expect(statuses[0]).toBe(200);
  });
});
