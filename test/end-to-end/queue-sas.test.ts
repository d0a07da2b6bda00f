/** Shared access signatures for queues, made and used by Microsoft's client; and every cell of the permission table. */
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  generateAccountSASQueryParameters,
  generateQueueSASQueryParameters,
  QueueSASPermissions,
  StorageSharedKeyCredential,
} from '@azure/storage-queue';
import { beforeAll, describe, expect, it } from 'vitest';
import { queueOperations } from '../../src/rest/queue/operations.ts';
import { ask, bodyOf, newName, newQueue, queueWith, serviceWith, takeOne } from '../support/queues.ts';
import { accountSas } from '../support/raw-signing.mjs';
import { account, accountKey, expectError, expectRefusal, onEveryEngine, serverFor } from '../support/test-server.ts';

const credential = new StorageSharedKeyCredential(account, accountKey);
const expiresOn = new Date('2099-01-01T00:00:00Z');

function queueSas(queueName: string, letters: string, more: object = {}): string {
  const permissions = QueueSASPermissions.parse(letters);
  return generateQueueSASQueryParameters({ queueName, permissions, expiresOn, ...more }, credential).toString();
}

describe('A service SAS for a queue', () => {
  onEveryEngine((running) => {
    it('does what its letters say', async () => {
      const queue = await newQueue(running);
      const [reader, adder, updater, processor] = [...'raup'].map((letter) =>
        queueWith(queue, queueSas(queue.name, letter)),
      );
      await adder!.sendMessage('text');
      expect((await reader!.peekMessages()).peekedMessageItems).toHaveLength(1);
      expect((await reader!.getProperties()).approximateMessagesCount).toBe(1);
      const taken = await takeOne(processor!);
      const updated = await updater!.updateMessage(taken.messageId, taken.popReceipt, 'new', 60);
      await processor!.deleteMessage(taken.messageId, updated.popReceipt!);
      await expectRefusal(reader!.sendMessage('x'), 403, 'AuthorizationPermissionMismatch');
      await expectRefusal(adder!.receiveMessages(), 403, 'AuthorizationPermissionMismatch');
      await expectRefusal(processor!.peekMessages(), 403, 'AuthorizationPermissionMismatch');
    });

    it('permits this queue and no other, and nothing of the account', async () => {
      const [queue, other] = [await newQueue(running), await newQueue(running)];
      const sas = queueSas(queue.name, 'raup');
      await expectRefusal(queueWith(other, sas).peekMessages(), 403, 'AuthenticationFailed');
      await expectRefusal(serviceWith(running, sas).listQueues().next(), 403, 'AuthenticationFailed');
    });

    it('does not make, change or remove the queue itself', async () => {
      const queue = await newQueue(running);
      const holder = queueWith(queue, queueSas(queue.name, 'raup'));
      await expectRefusal(holder.create(), 403, 'AuthorizationFailure');
      await expectRefusal(holder.setMetadata({ a: '1' }), 403, 'AuthorizationFailure');
      await expectRefusal(holder.delete(), 403, 'AuthorizationFailure');
    });

    it('expires by the time of the server', async () => {
      const queue = await newQueue(running);
      const holder = queueWith(queue, queueSas(queue.name, 'r', { expiresOn: new Date(Date.now() + 3_600_000) }));
      await holder.peekMessages();
      await running.server.clock.advance(3_601);
      await expectRefusal(holder.peekMessages(), 403, 'AuthenticationFailed');
    });
  });
});

describe('An account SAS', () => {
  onEveryEngine((running) => {
    it('does what its letters say, at every level', async () => {
      const sas = (letters: string, types = 'sco', services = 'q') =>
        generateAccountSASQueryParameters(
          {
            permissions: AccountSASPermissions.parse(letters),
            resourceTypes: AccountSASResourceTypes.parse(types).toString(),
            services: AccountSASServices.parse(services).toString(),
            expiresOn,
          },
          credential,
        ).toString();
      const queue = serviceWith(running, sas('rwdlacup')).getQueueClient(newName());
      await queue.create();
      await queue.setMetadata({ a: '1' });
      await queue.sendMessage('text');
      const taken = await takeOne(queue);
      const { popReceipt } = await queue.updateMessage(taken.messageId, taken.popReceipt, 'new', 10);
      await queue.deleteMessage(taken.messageId, popReceipt!);
      await queue.clearMessages();
      await serviceWith(running, sas('l', 's')).listQueues().next();
      await queue.delete();
      await expectRefusal(serviceWith(running, sas('r')).listQueues().next(), 403, 'AuthorizationPermissionMismatch');
      await expectRefusal(
        serviceWith(running, sas('l', 'o')).listQueues().next(),
        403,
        'AuthorizationResourceTypeMismatch',
      );
      await expectRefusal(
        serviceWith(running, sas('l', 'sco', 'bt'))
          .listQueues()
          .next(),
        403,
        'AuthorizationServiceMismatch',
      );
    });
  });
});

/** As Microsoft's pages on the two kinds of signatures have it. An allowed request changes nothing that the other rows need. */
interface Row {
  readonly operation: string;
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  /** Resource types of an account SAS, and the permissions of which one suffices; none: only with the key. */
  readonly types: 's' | 'c' | 'o';
  readonly letters: string;
  /** Those of a service SAS; undefined: it opens nothing here. */
  readonly own?: string;
}

const MESSAGE = '/matrix/messages/00000000-0000-4000-8000-000000000000?popreceipt=none';
// biome-ignore format: a table
const rows: readonly Row[] = [
  { operation: 'List Queues', method: 'GET', path: '/?comp=list', types: 's', letters: 'l' },
  { operation: 'Get Queue Service Properties', method: 'GET', path: '/?restype=service&comp=properties', types: 's', letters: 'r' },
  { operation: 'Set Queue Service Properties', method: 'PUT', path: '/?restype=service&comp=properties', body: '<StorageServiceProperties />', types: 's', letters: 'w' },
  { operation: 'Get Queue Service Stats', method: 'GET', path: '/?restype=service&comp=stats', types: 's', letters: 'r' },
  { operation: 'Create Queue', method: 'PUT', path: '/matrix', types: 'c', letters: 'cw' },
  { operation: 'Delete Queue', method: 'DELETE', path: '/absent', types: 'c', letters: 'd' },
  { operation: 'Get Queue Metadata', method: 'GET', path: '/matrix?comp=metadata', types: 'c', letters: 'r', own: 'r' },
  { operation: 'Set Queue Metadata', method: 'PUT', path: '/matrix?comp=metadata', types: 'c', letters: 'w' },
  { operation: 'Get Queue ACL', method: 'GET', path: '/matrix?comp=acl', types: 'c', letters: '' },
  { operation: 'Set Queue ACL', method: 'PUT', path: '/matrix?comp=acl', types: 'c', letters: '' },
  { operation: 'Put Message', method: 'POST', path: '/matrix/messages', body: bodyOf('t'), types: 'o', letters: 'a', own: 'a' },
  { operation: 'Get Messages', method: 'GET', path: '/matrix/messages', types: 'o', letters: 'p', own: 'p' },
  { operation: 'Peek Messages', method: 'GET', path: '/matrix/messages?peekonly=true', types: 'o', letters: 'r', own: 'r' },
  { operation: 'Clear Messages', method: 'DELETE', path: '/matrix/messages', types: 'o', letters: 'd', own: '' },
  { operation: 'Delete Message', method: 'DELETE', path: MESSAGE, types: 'o', letters: 'p', own: 'p' },
  { operation: 'Update Message', method: 'PUT', path: `${MESSAGE}&visibilitytimeout=0`, types: 'o', letters: 'u', own: 'u' },
];
const ACCOUNT_LETTERS = [...'rwdxylacuptfi'];

describe('The permissions of a shared access signature', () => {
  const running = serverFor('memory');

  beforeAll(async () => {
    await running.queues.createQueue('matrix');
  });

  async function said(row: Row, sas: string): Promise<string> {
    const path = `${row.path}${row.path.includes('?') ? '&' : '?'}${sas}`;
    const content = row.body === undefined ? {} : { body: row.body };
    const answer = await ask(running, row.method, path, { unsigned: true, ...content });
    if (answer.status >= 500) return `${answer.status}`;
    return answer.status === 401 || answer.status === 403 ? String(answer.headers['x-ms-error-code']) : 'allowed';
  }

  it('are asked for every operation that is built', () => {
    const built = queueOperations.filter((row) => row.isImplemented).map(({ name }) => name);
    expect(new Set([...rows.map(({ operation }) => operation), 'Preflight Queue Request'])).toEqual(new Set(built));
    expect(new Set(built).size).toBe(17);
  });

  it.each(rows)('of an account permit or refuse $operation as in the table', async (row) => {
    const fields = { sv: '2022-11-02', se: '2099-01-01T00:00:00Z' };
    for (const types of ['s', 'c', 'o', 'sco'.replace(row.types, ''), 'sco']) {
      for (const letters of [
        ...ACCOUNT_LETTERS,
        ACCOUNT_LETTERS.filter((one) => !row.letters.includes(one)).join(''),
      ]) {
        const sas = accountSas({ ...fields, ss: 'q', srt: types, sp: letters }).join('&');
        const isAllowed = [...letters].some((letter) => row.letters.includes(letter));
        const refused = row.letters === '' ? 'AuthorizationFailure' : 'AuthorizationPermissionMismatch';
        const meant = !types.includes(row.types)
          ? 'AuthorizationResourceTypeMismatch'
          : isAllowed
            ? 'allowed'
            : refused;
        expect([types, letters, await said(row, sas)]).toEqual([types, letters, meant]);
      }
    }
    const other = accountSas({ ...fields, ss: 'bt', srt: 'sco', sp: ACCOUNT_LETTERS.join('') }).join('&');
    expect(await said(row, other)).toBe('AuthorizationServiceMismatch');
  });

  it.each(rows.filter(({ path }) => path.startsWith('/matrix')))(
    'of a queue open and close $operation as the table says',
    async (row) => {
      for (const letters of ['r', 'a', 'u', 'p', 'raup', 'raup'.replace(row.own || 'none', '')]) {
        const isAllowed = row.own !== undefined && row.own !== '' && letters.includes(row.own);
        const refused = row.own === undefined ? 'AuthorizationFailure' : 'AuthorizationPermissionMismatch';
        expect([letters, await said(row, queueSas('matrix', letters))]).toEqual([
          letters,
          isAllowed ? 'allowed' : refused,
        ]);
      }
    },
  );

  it('are required of every caller: anonymous access is refused', async () => {
    for (const row of rows) {
      const answer = await ask(running, row.method, row.path, { unsigned: true, ...(row.body && { body: row.body }) });
      expectError(answer, 401, 'NoAuthenticationInformation');
    }
    const old = { unsigned: true, headers: { 'x-ms-version': '2018-03-28' } };
    expectError(await ask(running, 'GET', '/matrix/messages', old), 404, 'ResourceNotFound');
  });
});
