import { randomUUID } from 'node:crypto';
import {
  AnonymousCredential,
  BlobBatchClient,
  BlobSASPermissions,
  type ContainerClient,
  ContainerSASPermissions,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { BOUNDARY, batchText, outcomes, type Part, partAnswers, partText, sendBatch } from '../support/blob-batches.ts';
import { account, expectError, onEveryEngine, version } from '../support/test-server.ts';

const OTHER_KEY = Buffer.alloc(64, 1).toString('base64');
const expiresOn = new Date('2099-01-01');

async function filled(container: ContainerClient, ...names: string[]): Promise<string> {
  await Promise.all(names.map((name) => container.uploadBlockBlob(name, 'x', 1)));
  return `/${account}/${container.containerName}`;
}

async function namesIn(container: ContainerClient): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of container.listBlobsFlat()) names.push(name);
  return names;
}

const statuses = (answer: { subResponses: readonly { status: number; errorCode?: string }[] }) =>
  answer.subResponses.map(({ status, errorCode }) => errorCode ?? status);

describe('Blob Batch', () => {
  onEveryEngine((running) => {
    const clients = (container: ContainerClient) => [
      running.service.getBlobBatchClient(),
      container.getBlobBatchClient(),
    ];

    it('deletes blobs by the client, on the account and on a container, and answers each by itself', async () => {
      const container = await running.newContainer();
      for (const client of clients(container)) {
        await filled(container, 'a', 'b/ü+%25#😀', 'c');
        const wanted = ['a', 'missing', 'b/ü+%25#😀'].map((name) => container.getBlobClient(name));
        const answer = await client.deleteBlobs(wanted);
        expect(statuses(answer)).toEqual([202, 'BlobNotFound', 202]);
        expect([answer.subResponsesSucceededCount, answer.subResponsesFailedCount]).toEqual([2, 1]);
        expect(answer.subResponses[1]!.bodyAsText).toContain('<Code>BlobNotFound</Code>');
        expect(await namesIn(container)).toEqual(['c']);
      }
    });

    it('deletes by the signature of each part', async () => {
      const container = await running.newContainer();
      await filled(container, 'a', 'b', 'c', 'd');
      const sas = async (name: string, permissions: string) =>
        container.getBlobClient(name).generateSasUrl({ permissions: BlobSASPermissions.parse(permissions), expiresOn });
      const wrong = (await sas('d', 'd')).replace('/d?', '/c?');
      const urls = [await sas('a', 'd'), await sas('b', 'r'), wrong, container.getBlobClient('d').url];
      const answer = await running.service.getBlobBatchClient().deleteBlobs(urls, new AnonymousCredential());
      expect(statuses(answer)).toEqual([
        202,
        'AuthorizationPermissionMismatch',
        'AuthenticationFailed',
        'NoAuthenticationInformation',
      ]);
      expect(await namesIn(container)).toEqual(['b', 'c', 'd']);
    });

    it('takes the signature of a container for the batch and its parts, on the container only', async () => {
      const container = await running.newContainer();
      await filled(container, 'a', 'b');
      const permissions = ContainerSASPermissions.parse('d');
      const [, sas] = (await container.generateSasUrl({ permissions, expiresOn })).split('?');
      const urls = ['a', 'b'].map((name) => `${container.getBlobClient(name).url}?${sas}`);
      const inContainer = new BlobBatchClient(`${container.url}?${sas}`, new AnonymousCredential());
      expect(statuses(await inContainer.deleteBlobs(urls, new AnonymousCredential()))).toEqual([202, 202]);
      const answer = await sendBatch(running, `/?comp=batch&${sas}`, batchText([]), { unsigned: true });
      expectError(answer, 403, 'AuthenticationFailed');
    });

    it('authorizes each part for itself, whoever sends the batch', async () => {
      const container = await running.newContainer();
      const base = await filled(container, 'a', 'b', 'c');
      const parts: Part[] = [
        { url: `${base}/a` },
        { url: `${base}/b`, key: OTHER_KEY },
        { url: `${base}/c`, unsigned: true },
      ];
      expect(outcomes(await sendBatch(running, '/?comp=batch', batchText(parts)))).toEqual([
        ['0', 202, undefined],
        ['1', 403, 'AuthenticationFailed'],
        ['2', 401, 'NoAuthenticationInformation'],
      ]);
      expect(await namesIn(container)).toEqual(['b', 'c']);
      const urls = [container.getBlobClient('b').url];
      const credential = new StorageSharedKeyCredential(account, OTHER_KEY);
      const refused = await running.service.getBlobBatchClient().deleteBlobs(urls, credential);
      expect(statuses(refused)).toEqual(['AuthenticationFailed']);
    });

    it('needs a credential of its own, whatever those of its parts are', async () => {
      const container = await running.newContainer();
      const body = batchText([{ url: `${await filled(container, 'a')}/a` }]);
      for (const path of ['/?comp=batch', `/${container.containerName}?restype=container&comp=batch`]) {
        expectError(await sendBatch(running, path, body, { unsigned: true }), 401, 'NoAuthenticationInformation');
        expectError(await sendBatch(running, path, body, { key: OTHER_KEY }), 403, 'AuthenticationFailed');
      }
      expect(await namesIn(container)).toEqual(['a']);
    });

    it('is understood in all forms of its address and of those of its parts', async () => {
      const container = await running.newContainer();
      const { containerName } = container;
      const forms = [
        `/${account}/${containerName}/a`,
        `/${account}/${containerName}/a?`,
        `/${containerName}/a`,
        `http://127.0.0.1:10000/${account}/${containerName}/a`,
        `https://${account}.blob.core.windows.net/${containerName}/a`,
      ];
      const paths = ['', '/', `/${containerName}`].flatMap((path) => [
        `${path}?comp=batch`,
        `${path}?restype=container&comp=batch`,
        `${path}?comp=Batch&restype=Container&timeout=30`,
      ]);
      for (const path of paths) {
        for (const url of forms) {
          await filled(container, 'a');
          const answer = await sendBatch(running, path, batchText([{ url }]));
          expect([path, url, ...outcomes(answer)]).toEqual([path, url, ['0', 202, undefined]]);
        }
      }
    });

    it('is understood with plain line feeds, a boundary of equals signs, and no line breaks after the last part', async () => {
      const container = await running.newContainer();
      const base = await filled(container, 'a', 'b', 'c');
      const text = (name: string) => batchText([{ url: `${base}/${name}` }]);
      const boundary = '===============0557771650==';
      const headers = { 'Content-Type': `multipart/mixed; boundary=${boundary}` };
      const answers = [
        await sendBatch(running, '/?comp=batch', text('a').replaceAll('\r\n', '\n')),
        await sendBatch(running, '/?comp=batch', text('b').replaceAll(BOUNDARY, boundary), { headers }),
        await sendBatch(
          running,
          '/?comp=batch',
          text('c').replace(`\r\n\r\n--${BOUNDARY}--\r\n`, `\r\n--${BOUNDARY}--`),
        ),
      ];
      expect(answers.flatMap(outcomes)).toEqual(Array(3).fill(['0', 202, undefined]));
    });

    it('answers with the headers that Azure sends, part by part', async () => {
      const container = await running.newContainer();
      const base = await filled(container, 'a');
      const clientId = randomUUID();
      const headers = { 'x-ms-client-request-id': clientId };
      const answer = await sendBatch(
        running,
        '/?comp=batch',
        batchText([{ url: `${base}/a`, headers }, { url: `${base}/missing` }]),
      );
      expect(answer.status).toBe(202);
      const [deleted, missing] = partAnswers(answer);
      expect([...deleted!.headers]).toEqual([
        ['x-ms-delete-type-permanent', 'true'],
        ['x-ms-request-id', expect.stringMatching(/^[0-9a-f-]{36}$/)],
        ['x-ms-version', version],
        ['x-ms-client-request-id', clientId],
        ['Server', 'Windows-Azure-Blob/1.0'],
      ]);
      expect([deleted!.reason, deleted!.body]).toEqual(['Accepted', '']);
      const id = missing!.headers.get('x-ms-request-id')!;
      expect([...missing!.headers.keys()]).toEqual([
        'x-ms-error-code',
        'x-ms-request-id',
        'x-ms-version',
        'Content-Length',
        'Content-Type',
        'Server',
      ]);
      expect(missing!.reason).toBe('The specified blob does not exist.');
      expect(missing!.headers.get('Content-Length')).toBe(String(Buffer.byteLength(missing!.body)));
      expect(missing!.body).toContain(`RequestId:${id}\n`);
      expect(new Set([id, deleted!.headers.get('x-ms-request-id'), answer.headers['x-ms-request-id']]).size).toBe(3);
    });

    it('honours the conditions and leases of each part', async () => {
      const container = await running.newContainer();
      const base = await filled(container, 'a', 'b', 'c', 'd', 'e');
      const leased = container.getBlobClient('c').getBlobLeaseClient();
      await leased.acquireLease(-1);
      const { etag } = await container.getBlobClient('a').getProperties();
      const part = (name: string, headers: Record<string, string> = {}): Part => ({ url: `${base}/${name}`, headers });
      const parts = [
        part('a', { 'If-Match': etag! }),
        part('b', { 'If-Match': '"0x1"' }),
        part('c'),
        part('c', { 'x-ms-lease-id': leased.leaseId }),
        part('d', { 'x-ms-delete-snapshots': 'include' }),
        part('e', { 'x-ms-delete-snapshots': 'all' }),
      ];
      const answer = await sendBatch(running, '/?comp=batch', batchText(parts));
      // The parts of one blob run side by side, in either order.
      const [a, b, c, withLease, d, e] = outcomes(answer).map(([, status, code]) => code ?? status);
      expect([a, b, withLease, d, e]).toEqual([202, 'ConditionNotMet', 202, 202, 'InvalidHeaderValue']);
      expect(['LeaseIdMissing', 'BlobNotFound']).toContain(c);
      expect(await namesIn(container)).toEqual(['b', 'e']);
    });

    it('deletes snapshots, one by one and with their blob', async () => {
      const container = await running.newContainer();
      const base = await filled(container, 'a', 'b');
      const [a, b] = ['a', 'b'].map((name) => container.getBlobClient(name));
      const { snapshot } = await a!.createSnapshot();
      await b!.createSnapshot();
      const parts = [
        { url: `${base}/a?snapshot=${snapshot}` },
        { url: `${base}/a?snapshot=2020-01-01T00:00:00.0000000Z` },
        { url: `${base}/b` },
      ];
      const seen = outcomes(await sendBatch(running, '/?comp=batch', batchText(parts))).map(
        ([, status, code]) => code ?? status,
      );
      expect(seen).toEqual([202, 'BlobNotFound', 'SnapshotsPresent']);
      const headers = { 'x-ms-delete-snapshots': 'include' };
      await sendBatch(running, '/?comp=batch', batchText([{ url: `${base}/a` }, { url: `${base}/b`, headers }]));
      expect(await namesIn(container)).toEqual([]);
    });

    it('answers one of two parts that delete the same blob with 404', async () => {
      const container = await running.newContainer();
      const url = `${await filled(container, 'a')}/a`;
      const answer = await sendBatch(running, '/?comp=batch', batchText([{ url }, { url }]));
      const seen = outcomes(answer).map(([, status]) => status);
      expect(seen.sort()).toEqual([202, 404]);
    });

    it('routes Set Blob Tier as it comes alone', async () => {
      const container = await running.newContainer();
      const url = `${await filled(container, 'a')}/a?comp=tier`;
      const headers = { 'x-ms-access-tier': 'Cool' };
      const alone = await running.request('PUT', url.slice(`/${account}`.length), { headers });
      const answer = await sendBatch(running, '/?comp=batch', batchText([{ method: 'PUT', url, headers }]));
      expect(alone.status).toBe(200);
      expect(outcomes(answer)).toEqual([['0', alone.status, alone.headers['x-ms-error-code']]]);
    });

    it('sets tiers by the client, and answers for each blob', async () => {
      const container = await running.newContainer();
      await filled(container, 'a', 'b');
      const blobs = ['a', 'b', 'none'].map((name) => container.getBlobClient(name));
      const { subResponses } = await container.getBlobBatchClient().setBlobsAccessTier(blobs, 'Cool');
      expect(subResponses.map(({ status }) => status)).toEqual([200, 200, 404]);
      for (const blob of blobs.slice(0, 2)) expect((await blob.getProperties()).accessTier).toBe('Cool');
    });

    it('takes 256 parts, and not one more', async () => {
      const container = await running.newContainer();
      const names = Array.from({ length: 256 }, (_, at) => `blob-${at}`);
      const base = await filled(container, ...names);
      const parts = names.map((name) => ({ url: `${base}/${name}` }));
      const tooMany = await sendBatch(running, '/?comp=batch', batchText([...parts, { url: `${base}/more` }]));
      expect(outcomes(tooMany)).toEqual([[undefined, 400, 'ExceedsMaxBatchRequestCount']]);
      const answer = await sendBatch(running, '/?comp=batch', batchText(parts));
      expect(outcomes(answer)).toEqual(names.map((_, at) => [String(at), 202, undefined]));
      expect(await namesIn(container)).toEqual([]);
    });

    it('is refused as a whole with parts of two kinds', async () => {
      const container = await running.newContainer();
      const url = `${await filled(container, 'a')}/a`;
      const tier = { method: 'PUT', url: `${url}?comp=tier`, headers: { 'x-ms-access-tier': 'Cool' } };
      const answer = await sendBatch(running, '/?comp=batch', batchText([{ url }, tier]));
      expect(outcomes(answer)).toEqual([[undefined, 400, 'AllBatchSubRequestsShouldBeSameApi']]);
      expect(partAnswers(answer)[0]!.body).toContain('<Code>AllBatchSubRequestsShouldBeSameApi</Code>');
      expect(await namesIn(container)).toEqual(['a']);
    });

    it('is refused as a whole if it cannot be taken apart, or has a part that may not be in it', async () => {
      const container = await running.newContainer();
      const other = await running.newContainer();
      const base = await filled(container, 'a');
      await filled(other, 'a');
      const good = { url: `${base}/a` };
      const text = batchText([good]);
      const nested = text.replace('application/http', 'multipart/mixed; boundary=inner');
      const bodies: [what: string, body: string][] = [
        ['no body', ''],
        ['no parts', batchText([])],
        ['another boundary', text.replaceAll(BOUNDARY, 'batch_2')],
        ['no end', text.replace(`--${BOUNDARY}--`, '')],
        ['a part without an id', text.replace(/Content-ID.*\r\n/, '')],
        ['a batch in the batch', nested],
        ['a part with a body', batchText([good, `${partText(good)}body`])],
        ['a part that announces a body', batchText([good, { ...good, headers: { 'Content-Length': '3' } }])],
        ['no request', batchText([good, '\r\nnothing'])],
        ['another operation', batchText([good, { ...good, method: 'GET' }])],
        ['an operation on a container', batchText([good, { url: `${base}?restype=container` }])],
        ['a blob of another account', batchText([good, { url: 'https://other.blob.core.windows.net/c/a' }])],
        ['a blob of another container', batchText([good, { url: `/${account}/${other.containerName}/a` }])],
      ];
      for (const [what, body] of bodies) {
        const answer = await sendBatch(running, `/${container.containerName}?restype=container&comp=batch`, body);
        expect([what, answer.status, ...outcomes(answer)]).toEqual([what, 202, [undefined, 400, 'InvalidInput']]);
      }
      expect([...(await namesIn(container)), ...(await namesIn(other))]).toEqual(['a', 'a']);
    });

    it('is refused without its type, and with more than 4 MiB', async () => {
      const send = (type: string | undefined, body: string) =>
        sendBatch(running, '/?comp=batch', body, { headers: { 'Content-Type': type } });
      expectError(await send(undefined, batchText([])), 400, 'MissingRequiredHeader');
      expectError(await send('application/json', batchText([])), 400, 'InvalidHeaderValue');
      expectError(await send('multipart/mixed', batchText([])), 400, 'InvalidHeaderValue');
      const long = 'x'.repeat((4 << 20) + 1);
      expectError(await send('multipart/mixed; boundary=b', long), 413, 'RequestBodyTooLarge');
    });

    it('is a write, which the secondary address refuses, and so are its parts', async () => {
      const container = await running.newContainer();
      await filled(container, 'a');
      const url = `/${account}-secondary/${container.containerName}/a`;
      const answer = await sendBatch(running, '/?comp=batch', batchText([{ url }]));
      expect(outcomes(answer)).toEqual([['0', 403, 'InsufficientAccountPermissions']]);
    });
  });
});
