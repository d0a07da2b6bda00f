/** Get and Set Queue ACL, and the effect of stored access policies on signatures. */
import {
  generateQueueSASQueryParameters,
  type QueueClient,
  QueueSASPermissions,
  type QueueSASSignatureValues,
  type SignedIdentifier,
  StorageSharedKeyCredential,
} from '@azure/storage-queue';
import { describe, expect, it } from 'vitest';
import { ask, newQueue, queueWith } from '../support/queues.ts';
import { account, accountKey, expectError, expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

const START = new Date('2026-01-02T03:04:05.678Z');
const EXPIRY = new Date('2099-01-02T00:00:00Z');
const credential = new StorageSharedKeyCredential(account, accountKey);

function sasOf(queue: QueueClient, more: Partial<QueueSASSignatureValues>): string {
  return generateQueueSASQueryParameters({ queueName: queue.name, ...more }, credential).toString();
}

describe('Get Queue ACL and Set Queue ACL', () => {
  onEveryEngine((running) => {
    it('stores policies, which come back with dates of seven digits', async () => {
      const queue = await newQueue(running);
      expect((await queue.getAccessPolicy()).signedIdentifiers).toEqual([]);
      const policies: SignedIdentifier[] = [
        { id: 'first <&>', accessPolicy: { startsOn: START, expiresOn: EXPIRY, permissions: 'raup' } },
        { id: 'second', accessPolicy: { permissions: 'r' } },
      ];
      expect((await queue.setAccessPolicy(policies))._response.status).toBe(204);
      expect((await queue.getAccessPolicy()).signedIdentifiers).toMatchObject(policies);
      const answer = await ask(running, 'GET', `/${queue.name}?comp=acl`);
      expect(answer.text).toContain(
        '<Start>2026-01-02T03:04:05.6780000Z</Start><Expiry>2099-01-02T00:00:00.0000000Z</Expiry><Permission>raup</Permission>',
      );
      expect((await ask(running, 'HEAD', `/${queue.name}?comp=acl`)).status).toBe(200);
      await queue.setAccessPolicy();
      expect((await queue.getAccessPolicy()).signedIdentifiers).toEqual([]);
    });

    it('is for the owner alone', async () => {
      const queue = await newQueue(running);
      const permissions = QueueSASPermissions.parse('raup');
      const holder = queueWith(queue, sasOf(queue, { permissions, expiresOn: EXPIRY }));
      await expectRefusal(holder.getAccessPolicy(), 403, 'AuthorizationFailure');
      await expectRefusal(holder.setAccessPolicy([]), 403, 'AuthorizationFailure');
    });

    it('takes effect at once when a policy is changed, and when it is removed', async () => {
      const queue = await newQueue(running);
      const holder = queueWith(queue, sasOf(queue, { identifier: 'policy' }));
      const set = (permissions: string, expiresOn = EXPIRY, id = 'policy') =>
        queue.setAccessPolicy([{ id, accessPolicy: { permissions, expiresOn } as never }]);
      await expectRefusal(holder.peekMessages(), 403, 'AuthenticationFailed');
      await set('r');
      await holder.peekMessages();
      await expectRefusal(holder.sendMessage('text'), 403, 'AuthorizationPermissionMismatch');
      await set('a');
      await holder.sendMessage('text');
      await expectRefusal(holder.peekMessages(), 403, 'AuthorizationPermissionMismatch');
      await set('ra', new Date(Date.now() - 3_600_000));
      await expectRefusal(holder.peekMessages(), 403, 'AuthenticationFailed');
      await set('ra', EXPIRY, 'renamed');
      await expectRefusal(holder.peekMessages(), 403, 'AuthenticationFailed');
      await set('ra');
      await holder.peekMessages();
      await queue.setAccessPolicy([]);
      await expectRefusal(holder.peekMessages(), 403, 'AuthenticationFailed');
    });

    it('is deleted with its queue: a new one of the same name has none of it', async () => {
      const queue = await newQueue(running);
      await queue.setAccessPolicy([{ id: 'policy', accessPolicy: { permissions: 'r', expiresOn: EXPIRY } as never }]);
      const holder = queueWith(queue, sasOf(queue, { identifier: 'policy' }));
      await holder.peekMessages();
      await queue.delete();
      await queue.create();
      await expectRefusal(holder.peekMessages(), 403, 'AuthenticationFailed');
    });

    it('is that of the last writer, whole', async () => {
      const queue = await newQueue(running);
      await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          queue.setAccessPolicy(['a', 'b'].map((id) => ({ id: `${id}-${i}`, accessPolicy: { permissions: 'r' } }))),
        ),
      );
      const [first, second] = (await queue.getAccessPolicy()).signedIdentifiers;
      expect([first!.id[0], second!.id[0]]).toEqual(['a', 'b']);
      expect(first!.id.slice(1)).toBe(second!.id.slice(1));
    });
  });

  onLmdb((running) => {
    const wrap = (inner: string) => `<SignedIdentifiers>${inner}</SignedIdentifiers>`;
    const one = (id: string, policy = '') => `<SignedIdentifier><Id>${id}</Id>${policy}</SignedIdentifier>`;

    it.each([
      ['six policies', wrap([1, 2, 3, 4, 5, 6].map((id) => one(String(id))).join(''))],
      ['an id twice', wrap(one('a') + one('a'))],
      ['an id of 65 characters', wrap(one('x'.repeat(65)))],
      ['a letter that queues do not have', wrap(one('a', '<AccessPolicy><Permission>rw</Permission></AccessPolicy>'))],
      ['a date that is none', wrap(one('a', '<AccessPolicy><Start>yesterday</Start></AccessPolicy>'))],
      ['another document', '<Others />'],
    ])('refuses %s', async (_, body) => {
      const queue = await newQueue(running);
      expectError(await ask(running, 'PUT', `/${queue.name}?comp=acl`, { body }), 400, 'InvalidXmlDocument');
    });
  });
});
