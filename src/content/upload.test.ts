import { createHash } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { account, bytesOfSeed, inPieces, openStore, watchedExtents } from '../../test/support/content-store.ts';
import { CHUNK_BYTES_MAX, NoSpace } from '../extents/extents.ts';
import { crc64Base64 } from '../hashing/hasher.ts';

const md5 = { md5: true };

/** A source that is fed by hand. */
function byHand() {
  const waiting: Buffer[] = [];
  let wake = () => {};
  let ended = false;
  const seen = { pulled: 0, returned: false };
  const source: AsyncIterable<Buffer> = {
    [Symbol.asyncIterator]: () => ({
      async next() {
        while (waiting.length === 0 && !ended) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        const value = waiting.shift();
        if (!value) return { done: true, value: undefined };
        seen.pulled++;
        return { done: false, value };
      },
      async return() {
        seen.returned = true;
        return { done: true, value: undefined };
      },
    }),
  };
  return {
    source,
    seen,
    send(...pieces: Buffer[]) {
      waiting.push(...pieces);
      wake();
    },
    end() {
      ended = true;
      wake();
    },
  };
}

async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
}

describe('Taking bytes', () => {
  it('leaves them in chunks of at most 8 MiB, durable, with their hashes', async () => {
    const extents = watchedExtents();
    const { store, epoch } = await openStore(() => extents);
    const bytes = bytesOfSeed(1, 2 * CHUNK_BYTES_MAX + 12345);
    const taken = await store.upload(account, inPieces(bytes, 64_000), bytes.length, md5);
    expect(taken.length).toBe(bytes.length);
    expect(taken.chunkRefs.map(({ length }) => length)).toEqual([CHUNK_BYTES_MAX, CHUNK_BYTES_MAX, 12345]);
    expect(taken.locations).toEqual(extents.slots.map(({ place }) => place));
    expect(extents.slots.map(({ state }) => state)).toEqual(['finished', 'finished', 'finished']);
    expect(Buffer.concat(extents.slots.map((slot) => slot.bytes)).equals(bytes)).toBe(true);
    expect(extents.slots.map(({ name }) => name)).toEqual(
      taken.chunkRefs.map(({ chunk }) => ({ account, epoch, number: chunk.number })),
    );
    expect(taken.md5).toBe(createHash('md5').update(bytes).digest('base64'));
    expect(taken.crc64).toBe(crc64Base64(bytes));
  });

  it('computes no MD5 that nobody wants', async () => {
    const { store } = await openStore();
    expect((await store.upload(account, inPieces(Buffer.from('a'), 1), 1, { md5: false })).md5).toBeUndefined();
  });

  it('of nothing leaves no chunk', async () => {
    const { store } = await openStore();
    const taken = await store.upload(account, inPieces(Buffer.alloc(0), 1), 0, md5);
    expect(taken).toMatchObject({ length: 0, chunkRefs: [], locations: [], md5: '1B2M2Y8AsgTpgAmY7PhCfg==' });
  });

  it('syncs the chunks of a long body in groups while it goes on, so that the disk keeps up', async () => {
    const extents = watchedExtents();
    const { store } = await openStore(() => extents);
    const piece = Buffer.alloc(CHUNK_BYTES_MAX);
    let unfinishedMost = 0;
    async function* source() {
      for (let i = 0; i < 20; i++) {
        yield piece;
        unfinishedMost = Math.max(unfinishedMost, extents.slots.filter(({ state }) => state === 'open').length);
      }
    }
    await store.upload(account, source(), 20 * CHUNK_BYTES_MAX, { md5: false });
    expect(extents.slots.every(({ state }) => state === 'finished')).toBe(true);
    expect(unfinishedMost).toBeLessThanOrEqual(9);
  });

  it('writes what came at once, or during a write, as one', async () => {
    let go = () => {};
    const first = new Promise<void>((resolve) => {
      go = resolve;
    });
    const extents = watchedExtents({ onWrite: (writes) => (writes === 1 ? first : undefined) });
    const { store } = await openStore(() => extents);
    const { source, send, end } = byHand();
    const taking = store.upload(account, source, 103, md5);
    const sent = Array.from({ length: 103 }, (_, i) => Buffer.from([i]));
    send(...sent.slice(0, 3));
    await settled();
    send(...sent.slice(3));
    await settled();
    end();
    go();
    await taking;
    expect(extents.writes.map(({ pieces }) => pieces)).toEqual([3, 100]);
    expect(extents.slots[0]!.bytes).toEqual(Buffer.concat(sent));
  });

  it('lets the sender wait while the disk does', async () => {
    let go = () => {};
    const first = new Promise<void>((resolve) => {
      go = resolve;
    });
    const extents = watchedExtents({ onWrite: () => first });
    const { store } = await openStore(() => extents);
    const { source, seen, send, end } = byHand();
    const piece = Buffer.alloc(64 << 10);
    const taking = store.upload(account, source, 40 * piece.length, md5);
    send(...Array<Buffer>(40).fill(piece));
    await settled();
    expect(seen.pulled).toBe(16);
    end();
    go();
    await taking;
    expect(seen.pulled).toBe(40);
  });

  it('gives pieces back to the source that wants them, once they are written', async () => {
    let go = () => {};
    const first = new Promise<void>((resolve) => {
      go = resolve;
    });
    const extents = watchedExtents({ onWrite: () => first });
    const { store } = await openStore(() => extents);
    const { source, send, end } = byHand();
    const given: Uint8Array[] = [];
    const giveBack = (pieces: readonly Uint8Array[]) => given.push(...pieces);
    const taking = store.upload(account, { ...source, recycle: giveBack }, 5, md5);
    const sent = [Buffer.from('12'), Buffer.from('345')];
    send(...sent);
    await settled();
    expect(given).toEqual([]);
    end();
    go();
    await taking;
    expect(given).toEqual(sent);
  });

  it('keeps nothing of a slow body in memory', async () => {
    const extents = watchedExtents();
    const { store } = await openStore(() => extents);
    const { source, send, end } = byHand();
    const taking = store.upload(account, source, 300, md5);
    for (let sent = 1; sent <= 3; sent++) {
      send(Buffer.alloc(50), Buffer.alloc(50));
      await settled();
      expect(extents.slots[0]!.written).toBe(100 * sent);
    }
    end();
    await taking;
  });

  it('forgets each piece when it is written, and not only when the next one comes', async () => {
    setFlagsFromString('--expose_gc');
    const collectGarbage: () => void = runInNewContext('gc');
    const { store } = await openStore();
    const { source, send, end } = byHand();
    const taking = store.upload(account, source, 200, md5);
    const sent = Array.from({ length: 2 }, () => {
      const piece = Buffer.from(new ArrayBuffer(100));
      send(piece);
      return new WeakRef(piece.buffer);
    });
    await settled();
    collectGarbage();
    expect(sent.map((piece) => piece.deref())).toEqual([undefined, undefined]);
    end();
    await taking;
  });
});

describe('Bytes that are being taken', () => {
  it('hold their extents from the first write until they are released', async () => {
    const { store } = await openStore(() => watchedExtents({ extentBytes: CHUNK_BYTES_MAX }));
    const { source, send, end } = byHand();
    const taking = store.upload(account, source, CHUNK_BYTES_MAX + 1, md5);
    expect(store.pinnedExtents()).toEqual(new Set());
    send(Buffer.alloc(CHUNK_BYTES_MAX));
    await settled();
    expect(store.pinnedExtents()).toEqual(new Set(['e1']));
    send(Buffer.alloc(1));
    end();
    const taken = await taking;
    const other = await store.upload(account, inPieces(Buffer.from('a'), 1), 1, md5);
    expect(store.pinnedExtents()).toEqual(new Set(['e1', 'e2']));
    taken.release();
    taken.release();
    expect(store.pinnedExtents()).toEqual(new Set(['e2']));
    other.release();
    expect(store.pinnedExtents()).toEqual(new Set());
  });
});

describe('Taking bytes that fail to come or to be written', () => {
  const whole = bytesOfSeed(2, CHUNK_BYTES_MAX + 1000);
  async function* failing(error: Error) {
    yield whole.subarray(0, CHUNK_BYTES_MAX + 500);
    throw error;
  }
  const vanished = new Error('the client is gone');
  const full = new NoSpace('full');

  it.each([
    ['a body that is too short', {}, () => inPieces(whole.subarray(1), 65_536), /8389607 bytes instead of the 8389608/],
    [
      'a body that is too long',
      {},
      () => inPieces(Buffer.concat([whole, whole]), 65_536),
      /more than the 8389608 bytes/,
    ],
    ['a body that breaks off', {}, () => failing(vanished), vanished],
    ['a chunk without room', { onBegin: (n: number) => fail(n === 2, full) }, () => inPieces(whole, 65_536), full],
    ['a write that fails', { onWrite: (n: number) => fail(n === 5, full) }, () => inPieces(whole, 65_536), full],
    ['a sync that fails', { onFinish: () => fail(true, full) }, () => inPieces(whole, 65_536), full],
  ])('%s is an error that leaves nothing behind', async (_, faults, source, error) => {
    const extents = watchedExtents(faults);
    const { store, hashers } = await openStore(() => extents);
    await expect(store.upload(account, source(), whole.length, md5)).rejects.toThrow(error);
    expect(extents.slots.length).toBeGreaterThan(0);
    expect(extents.slots.filter(({ state }) => state === 'open')).toEqual([]);
    expect(store.pinnedExtents()).toEqual(new Set());
    expect(hashers.open).toBe(0);
  });

  it('tells the sender to stop, and tries nothing more', async () => {
    let begun = 0;
    const { store } = await openStore(() =>
      watchedExtents({
        onBegin() {
          begun++;
          throw full;
        },
      }),
    );
    const { source, seen, send } = byHand();
    const taking = store.upload(account, source, 10, md5);
    send(Buffer.alloc(1));
    await settled();
    send(Buffer.alloc(1));
    await expect(taking).rejects.toBe(full);
    expect(seen.returned).toBe(true);
    expect(begun).toBe(1);
  });

  it('tells a sender that waits for the disk', async () => {
    let stop = (_: Error) => {};
    const first = new Promise<void>((_, reject) => {
      stop = reject;
    });
    const { store } = await openStore(() => watchedExtents({ onWrite: () => first }));
    const { source, seen, send } = byHand();
    const taking = store.upload(account, source, 4 << 20, md5);
    send(...Array<Buffer>(40).fill(Buffer.alloc(64 << 10)));
    await settled();
    stop(full);
    await expect(taking).rejects.toBe(full);
    expect(seen).toEqual({ pulled: 16, returned: true });
  });

  it('waits for the write that is under way, so that nothing is written into a chunk that was given up', async () => {
    let go = () => {};
    const first = new Promise<void>((resolve) => {
      go = resolve;
    });
    const extents = watchedExtents({ onWrite: () => first });
    const { store } = await openStore(() => extents);
    const taking = store.upload(account, failing(vanished), whole.length, md5).catch((error) => error);
    await settled();
    expect(extents.slots.map(({ state }) => state)).toEqual(['open']);
    go();
    expect(await taking).toBe(vanished);
    expect(extents.slots.map(({ state }) => state)).toEqual(['abandoned', 'abandoned']);
  });
});

describe('Taking bytes that cannot be hashed', () => {
  it('is an error that waits for the write beside it', async () => {
    let go = () => {};
    const first = new Promise<void>((resolve) => {
      go = resolve;
    });
    const extents = watchedExtents({ onWrite: () => first });
    const { store, hashers } = await openStore(() => extents);
    hashers.failure = new Error('the thread died');
    const taking = store.upload(account, inPieces(Buffer.from('abc'), 3), 3, md5).catch((error) => error);
    await settled();
    expect(extents.slots.map(({ state }) => state)).toEqual(['open']);
    go();
    expect(await taking).toBe(hashers.failure);
    expect(extents.slots.map(({ state }) => state)).toEqual(['abandoned']);
  });
});

function fail(now: boolean, error: Error): void {
  if (now) throw error;
}
