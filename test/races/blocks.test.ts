import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { type Answer, doesHeavy, onEveryDisk, type Running } from '../support/test-server.ts';

const CLIENTS = 32;
/** `npm run test:large` races for longer. */
const length = Number(process.env.HOLDFAST_RACE_LENGTH ?? 1);
const timeout = 120_000 * length;
/** A list is committed at once or, if it is long, prepared in slices: both must have the same effect. */
const lists = [
  { kind: 'short', blocks: 24, rounds: 4 * length },
  { kind: 'long', blocks: 1_050, rounds: length },
];
const listsOn = ({ engine }: Running) => (doesHeavy(engine) ? lists : lists.slice(0, 1));

describe('32 clients and the blocks of one blob', () => {
  onEveryDisk(
    (running) => {
      it('put all of them, and the commit finds each', async () => {
        const blob = await newBlob(running);
        const idsOf = (client: number) => [0, 1, 2, 3].map((at) => client * 4 + at);
        await everyClient(async (client) => {
          for (const id of idsOf(client)) expect((await blob.putBlock(id, `by ${client}`)).status).toBe(201);
        });
        const all = await running.request('GET', `${blob.path}?comp=blocklist&blocklisttype=uncommitted`);
        expect(all.text.match(/<Block>/g)).toHaveLength(CLIENTS * 4);
        const order = everyNumber(CLIENTS).flatMap(idsOf).reverse();
        expect((await blob.commit(order)).status).toBe(201);
        expect(await blob.read()).toEqual(order.map((id) => contentOf(id, `by ${Math.floor(id / 4)}`)));
      });

      it('put blocks of the same ids: the last of each stays, whole', async () => {
        const blob = await newBlob(running);
        const ids = everyNumber(6);
        await everyClient((client) => Promise.all(ids.map((id) => blob.putBlock(id, `by ${client}`))));
        expect((await blob.commit(ids)).status).toBe(201);
        const wanted = ids.map((id) => everyNumber(CLIENTS).map((client) => contentOf(id, `by ${client}`)));
        for (const [at, found] of (await blob.read()).entries()) expect(wanted[at]).toContain(found);
      });

      it.each(listsOn(running))(
        'commit a $kind list with the same If-Match: exactly one does',
        { timeout },
        async ({ kind, blocks, rounds }) => {
          const blob = await newBlob(running);
          await blob.putBlocks(blocks, 'first');
          let { etag } = (await blob.commit(everyNumber(blocks))).headers;
          for (let round = 0; round < rounds; round++) {
            const clients = kind === 'long' ? 6 : CLIENTS;
            const answers = await everyClient((at) => blob.commit(rotated(blocks, at), { 'If-Match': etag }), clients);
            const winners = answers.filter(({ status }) => status === 201);
            expect(winners).toHaveLength(1);
            for (const { status, headers } of answers) {
              if (status !== 201) expect([status, headers['x-ms-error-code']]).toEqual([412, 'ConditionNotMet']);
            }
            etag = winners[0]!.headers.etag;
            const order = rotated(blocks, answers.indexOf(winners[0]!));
            expect(await blob.read(etag)).toEqual(order.map((id) => contentOf(id, 'first')));
          }
        },
      );

      it.each(listsOn(running))(
        'commit a $kind list without a condition: all do, and the last stays',
        { timeout },
        async ({ kind, blocks, rounds }) => {
          const blob = await newBlob(running);
          await blob.putBlocks(blocks, 'first');
          await blob.commit(everyNumber(blocks));
          for (let round = 0; round < rounds; round++) {
            const clients = kind === 'long' ? 6 : CLIENTS;
            const answers = await everyClient((at) => blob.commit(rotated(blocks, at)), clients);
            expect(answers.map(({ status }) => status)).toEqual(Array(clients).fill(201));
            const last = lastOf(answers);
            const order = rotated(blocks, answers.indexOf(last));
            expect(await blob.read(last.headers.etag)).toEqual(order.map((id) => contentOf(id, 'first')));
          }
        },
      );

      leavesNothingBehind(running);
    },
    { start: { blobKeepAliveSeconds: 600 } },
  );
});

describe('Put Block List', () => {
  onEveryDisk(
    (running) => {
      it.each(listsOn(running))(
        'of a $kind list takes blocks as they were at one moment, though they are replaced',
        {
          timeout,
        },
        async ({ blocks, rounds }) => {
          const blob = await newBlob(running);
          await blob.putBlocks(blocks, 'round -1');
          // The first round meets uncommitted blocks only, the later ones mostly committed ones.
          for (let round = 0; round < rounds + 2; round++) {
            const replaced = everyNumber(24).map((at) => (at * 7919) % blocks);
            // The replaced block is uncommitted in some rounds, committed in others.
            if (round % 2 === 1) for (const id of replaced) await blob.putBlock(id, `before ${round}`);
            // One after another, far apart in the list: at any moment those before are new and those after are old.
            let acknowledged = 0;
            let begun = 0;
            const replacing = (async () => {
              for (const id of replaced) {
                begun++;
                expect((await blob.putBlock(id, `round ${round}`)).status).toBe(201);
                acknowledged++;
              }
            })();
            while (acknowledged < 2) await new Promise((resolve) => setImmediate(resolve));
            const least = acknowledged;
            const { status, headers } = await blob.commit(everyNumber(blocks));
            const most = begun;
            expect(status).toBe(201);
            const found = await blob.read(headers.etag);
            const isNew = replaced.map((id) => found[id] === contentOf(id, `round ${round}`));
            const count = isNew.filter(Boolean).length;
            expect(isNew).toEqual(replaced.map((_, at) => at < count));
            expect(count).toBeGreaterThanOrEqual(least);
            expect(count).toBeLessThanOrEqual(most);

            await replacing;
            // A block that came too late for that list is there for the next.
            expect((await blob.commit(everyNumber(blocks))).status).toBe(201);
            const last = await blob.read();
            for (const id of replaced) expect(last[id]).toBe(contentOf(id, `round ${round}`));
          }
        },
      );

      it.each(listsOn(running))(
        'of a $kind list and Delete Blob: it is there whole or not at all',
        { timeout },
        async ({ blocks, rounds }) => {
          const blob = await newBlob(running);
          for (let round = 0; round < rounds; round++) {
            await running.request('PUT', blob.path, { headers: { 'x-ms-blob-type': 'BlockBlob' }, body: 'before' });
            await blob.putBlocks(blocks, 'new');
            const [list, removed] = await Promise.all([
              blob.commit(everyNumber(blocks)),
              later(round, () => running.request('DELETE', blob.path)),
            ]);
            expect(removed.status).toBe(202);
            // The delete discards the uncommitted blocks, so that a later list finds none.
            if (list.status !== 201) expect(list.headers['x-ms-error-code']).toBe('InvalidBlockList');
            expect((await running.request('HEAD', blob.path)).status).toBe(404);
          }
        },
      );

      it.each(listsOn(running))(
        'of a $kind list and Put Blob: the later one stays, whole',
        { timeout },
        async ({ blocks, rounds }) => {
          const blob = await newBlob(running);
          for (let round = 0; round < rounds; round++) {
            await blob.putBlocks(blocks, 'new');
            const body = 'put at once '.repeat(4_000);
            const [list, put] = await Promise.all([
              blob.commit(everyNumber(blocks)),
              later(round, () =>
                running.request('PUT', blob.path, { headers: { 'x-ms-blob-type': 'BlockBlob' }, body }),
              ),
            ]);
            expect(put.status).toBe(201);
            if (list.status !== 201) expect(list.headers['x-ms-error-code']).toBe('InvalidBlockList');
            const last = lastOf([list, put]);
            const found = await blob.read(last.headers.etag);
            const wanted =
              last === put
                ? body
                : everyNumber(blocks)
                    .map((id) => contentOf(id, 'new'))
                    .join('');
            expect(found.join('')).toBe(wanted);
          }
        },
      );

      it.each(listsOn(running))(
        'of a $kind list of committed blocks, while they are overwritten, is done or finds none',
        {
          timeout,
        },
        async ({ kind, rounds }) => {
          const blob = await newBlob(running);
          const ids = everyNumber(24);
          // Each of them many times: long, and put quickly.
          const longer = kind === 'long' ? everyNumber(150).flatMap(() => ids) : ids;
          for (let round = 0; round < 4 * rounds; round++) {
            await blob.putBlocks(ids.length, 'old');
            await blob.commit(ids);
            const body = 'put at once '.repeat(4_000);
            const [put, ...answers] = await Promise.all([
              later(round, () =>
                running.request('PUT', blob.path, { headers: { 'x-ms-blob-type': 'BlockBlob' }, body }),
              ),
              ...[0, 1, 2].map(() => blob.commit(longer)),
            ]);
            expect(put.status).toBe(201);
            for (const { status, headers } of answers) {
              if (status !== 201) expect([status, headers['x-ms-error-code']]).toEqual([400, 'InvalidBlockList']);
            }
            expect((await blob.read(put.headers.etag)).join('')).toBe(body);
          }
        },
      );

      it.each(listsOn(running))(
        'of a $kind list and a lease: without its id none is done behind it',
        { timeout },
        async ({ blocks, rounds }) => {
          const blob = await newBlob(running);
          for (let round = 0; round < rounds; round++) {
            const before = await running.request('PUT', blob.path, {
              headers: { 'x-ms-blob-type': 'BlockBlob' },
              body: 'x',
            });
            await blob.putBlocks(blocks, 'new');
            const acquire = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': -1 };
            const [list, lease] = await Promise.all([
              blob.commit(everyNumber(blocks)),
              later(round, () => running.request('PUT', `${blob.path}?comp=lease`, { headers: acquire })),
            ]);
            expect(lease.status).toBe(201);
            if (list.status !== 201)
              expect([list.status, list.headers['x-ms-error-code']]).toEqual([412, 'LeaseIdMissing']);
            // Acquiring a lease changes no ETag: the ETag shows which blob was leased.
            expect(lease.headers.etag).toBe(list.headers.etag ?? before.headers.etag);
            const id = { 'x-ms-lease-id': lease.headers['x-ms-lease-id'] };
            if (list.status !== 201) expect((await blob.commit(everyNumber(blocks), id)).status).toBe(201);
            expect(await blob.read()).toEqual(everyNumber(blocks).map((at) => contentOf(at, 'new')));
            expect((await running.request('DELETE', blob.path, { headers: id })).status).toBe(202);
          }
        },
      );

      leavesNothingBehind(running);
    },
    { start: { blobKeepAliveSeconds: 600 } },
  );
});

const BLOCK_BYTES = 64;

/** Of one length, so that a replaced block changes nothing but bytes. */
function contentOf(id: number, version: string): string {
  return `block ${id}, ${version};`.padEnd(BLOCK_BYTES, '.');
}

async function newBlob(running: Running) {
  const { containerName } = await running.newContainer();
  const path = `/${containerName}/blob`;
  const blockId = (id: number) => Buffer.from(String(id).padStart(6, '0')).toString('base64');
  const putBlock = (id: number, version: string) =>
    running.request('PUT', `${path}?comp=block&blockid=${encodeURIComponent(blockId(id))}`, {
      body: contentOf(id, version),
    });
  return {
    path,
    putBlock,
    async putBlocks(count: number, version: string) {
      const worker = async (first: number) => {
        for (let id = first; id < count; id += CLIENTS) expect((await putBlock(id, version)).status).toBe(201);
      };
      await Promise.all(everyNumber(CLIENTS).map(worker));
    },
    commit(ids: readonly number[], headers = {}): Promise<Answer> {
      const list = ids.map((id) => `<Latest>${blockId(id)}</Latest>`).join('');
      return running.request('PUT', `${path}?comp=blocklist`, { headers, body: `<BlockList>${list}</BlockList>` });
    },
    /** Block by block. */
    async read(etag?: string): Promise<string[]> {
      const { status, headers, text } = await running.request('GET', path);
      expect(status).toBe(200);
      if (etag !== undefined) expect(headers.etag).toBe(etag);
      return text.match(new RegExp(`[^]{1,${BLOCK_BYTES}}`, 'g')) ?? [];
    },
  };
}

/** Nothing that lost a race stays for ever, and nothing is counted wrongly. */
function leavesNothingBehind(running: Running): void {
  it('and nothing is left over', async () => {
    expect((await check(running.where)).findings).toEqual([]);
  });
}

function everyClient<T>(act: (at: number) => Promise<T>, clients = CLIENTS): Promise<T[]> {
  return Promise.all(everyNumber(clients).map(act));
}

function everyNumber(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at);
}

/** Begins elsewhere. */
function rotated(count: number, by: number): number[] {
  return everyNumber(count).map((at) => (at + by) % count);
}

/** ETags rise with every write and have one length, so that they compare as text. */
function lastOf(answers: readonly Answer[]): Answer {
  const tag = ({ headers }: Answer) => headers.etag ?? '';
  return answers.reduce((last, answer) => (tag(answer) > tag(last) ? answer : last));
}

/** Some ticks of the event loop later, in each round more: the two requests interleave differently. */
async function later<T>(round: number, act: () => Promise<T>): Promise<T> {
  for (let turn = 0; turn < (round * 37) % 150; turn++) await new Promise((resolve) => setImmediate(resolve));
  return act();
}
