import { describe, expect, it } from 'vitest';
import type { StorageError } from '../services/common/errors.ts';
import type { SentContent } from '../services/common/upload.ts';
import { notImplementedOperation, operationOn, type Request } from './operation.ts';
import { contentBody, header, integerQuery, pathPart } from './params.ts';

interface Store {
  readonly greeting: string;
}

const operation = operationOn<Store>();
const row = operation({
  name: 'Put Greeting',
  route: 'PUT /{container}/{blob}',
  permission: 'write',
  test: 'none',
  unsupported: ['x-ms-tags', '?snapshot'],
  input: {
    container: pathPart(0),
    leaseId: header('x-ms-lease-id'),
    count: integerQuery('count'),
    body: contentBody({ bytesMax: 10 }),
    'odd "name"': pathPart(1),
  },
  run: async (store, input) => {
    // These lines are the test of the types: they compile only if the input's are inferred.
    const container: string = input.container;
    const leaseId: string | undefined = input.leaseId;
    const count: number | undefined = input.count;
    const body: SentContent = input.body;
    return { text: `${store.greeting} ${container} ${leaseId} ${count} ${body.whole} ${input['odd "name"']}` };
  },
  reply: ({ text }, request) => ({ status: 201, body: `${text} ${request.id}` }),
});

const request: Request = {
  id: 'id',
  method: 'PUT',
  rawPath: '/a/c/b',
  rawQuery: '',
  account: 'a',
  secondary: false,
  base: '/a',
  readsHosts: true,
  secure: false,
  container: 'c',
  item: 'b',
  query: { count: '3' },
  headers: { 'x-ms-lease-id': 'lease' },
  rawHeaders: [],
  version: '',
};

describe('a row', () => {
  it('reads, runs and replies', async () => {
    const input = row.read(request);
    row.readBody(input, Buffer.from('bytes'), request);
    const output = await row.run(
      { greeting: 'hello' },
      input,
      () => ({ greeting: '' }),
      () => Promise.reject(new Error('no parts')),
    );
    expect(row.reply(output, request)).toEqual({ status: 201, body: 'hello c lease 3 bytes b id' });
  });

  it('gets a long body as a stream', () => {
    const input = row.read(request) as { body: SentContent };
    const stream = (async function* () {})();
    row.readBody(input, stream, request);
    expect(input.body.whole).toBeUndefined();
    expect(input.body.bytes()).toBe(stream);
  });

  it('refuses headers and parameters of features that are not implemented, by name', () => {
    const refused = (sent: Request) => {
      try {
        row.read(sent);
      } catch (error) {
        return error as StorageError;
      }
      throw new Error('it was accepted');
    };
    expect(refused({ ...request, headers: { 'x-ms-tags': 'a=b' } })).toMatchObject({
      status: 501,
      code: 'NotImplemented',
      details: { HeaderName: 'x-ms-tags' },
    });
    expect(refused({ ...request, query: { snapshot: '2019' } }).message).toContain('snapshot');
  });

  it('reads its body once', () => {
    const body = contentBody({ bytesMax: 1 });
    const twice = {
      name: 'Twice',
      route: 'PUT /',
      permission: 'write',
      test: 'none',
      input: { body, again: body },
    } as const;
    expect(() => operation({ ...twice, run: async () => 1, reply: () => ({ status: 200 }) })).toThrow(
      /Twice.*body, again/,
    );
  });
});

describe('an operation that is not implemented', () => {
  it('is refused by its name, with the list of implemented operations', () => {
    expect(() =>
      notImplementedOperation('Set Blob Tier', 'PUT /{container}/{blob}', { comp: 'tier' }).read(request),
    ).toThrow(
      expect.objectContaining({
        status: 501,
        code: 'NotImplemented',
        message: expect.stringMatching(/Set Blob Tier.*docs\/operations\.md/),
      }),
    );
  });
});
