/** Two clients meet at one share. */
import { randomUUID } from 'node:crypto';
import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { account, onEveryDisk } from '../support/test-server.ts';

const CLIENTS = 8;

describe('A share', () => {
  onEveryDisk((running) => {
    const send = (method: string, path: string, headers: Record<string, string> = {}) =>
      running.request(method, path, { of: 'file', headers });
    const atOnce = async (request: () => ReturnType<typeof send>): Promise<number[]> => {
      const answers = await Promise.all(Array.from({ length: CLIENTS }, request));
      return answers.map(({ status }) => status).sort();
    };

    it('is created once, deleted once and leased once, however many ask at the same time', async () => {
      for (let round = 0; round < 5; round++) {
        const path = `/race-${round}?restype=share`;
        expect(await atOnce(() => send('PUT', path))).toEqual([201, ...Array(CLIENTS - 1).fill(409)]);
        const acquire = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '-1' };
        const leased = await atOnce(() => send('PUT', `${path}&comp=lease`, acquire));
        expect(leased).toEqual([201, ...Array(CLIENTS - 1).fill(409)]);
        expect((await send('PUT', `${path}&comp=lease`, { 'x-ms-lease-action': 'break' })).status).toBe(202);
        expect(await atOnce(() => send('DELETE', path))).toEqual([202, ...Array(CLIENTS - 1).fill(404)]);
      }
    });

    it('loses no setting to a writer of another one', async () => {
      const path = `/s-${randomUUID()}?restype=share`;
      await send('PUT', path);
      for (let round = 1; round <= 5; round++) {
        await Promise.all([
          send('PUT', `${path}&comp=metadata`, { 'x-ms-meta-round': String(round) }),
          send('PUT', `${path}&comp=properties`, { 'x-ms-share-quota': String(round) }),
          send('PUT', `${path}&comp=properties`, { 'x-ms-access-tier': round % 2 ? 'Hot' : 'Cool' }),
        ]);
        const { headers } = await send('GET', path);
        const settings = ['x-ms-meta-round', 'x-ms-share-quota', 'x-ms-access-tier'].map((name) => headers[name]);
        expect(settings).toEqual([String(round), String(round), round % 2 ? 'Hot' : 'Cool']);
      }
    });

    it('that is deleted while directories are made in it leaves no orphan', async () => {
      for (let round = 0; round < 10; round++) {
        const name = `contested-${round}`;
        await send('PUT', `/${name}?restype=share`);
        const made = Array.from({ length: CLIENTS }, (_, at) => send('PUT', `/${name}/d${at}?restype=directory`));
        const deleted = send('DELETE', `/${name}?restype=share`);
        for (const { status } of await Promise.all(made)) expect([201, 404]).toContain(status);
        expect((await deleted).status).toBe(202);
      }
      expect((await check(running.where)).findings).toEqual([]);
    });

    it('that is deleted and restored by many is there once', async () => {
      await running.server.setAccount(account, { shareRetentionDays: 1 });
      for (let round = 0; round < 5; round++) {
        const name = `kept-${round}`;
        await send('PUT', `/${name}?restype=share`);
        expect(await atOnce(() => send('DELETE', `/${name}?restype=share`))).toEqual([
          202,
          ...Array(CLIENTS - 1).fill(404),
        ]);
        const { text } = await send('GET', `/?comp=list&include=deleted&prefix=${name}`);
        const headers = {
          'x-ms-deleted-share-name': name,
          'x-ms-deleted-share-version': /<Version>(\w+)</.exec(text)![1]!,
        };
        const [first, ...others] = await atOnce(() => send('PUT', `/${name}?restype=share&comp=undelete`, headers));
        expect(first).toBe(201);
        expect(others.filter((status) => status !== 404 && status !== 409)).toEqual([]);
      }
      await running.server.setAccount(account, { shareRetentionDays: 0 });
      expect((await check(running.where)).findings).toEqual([]);
    });
  });
});
