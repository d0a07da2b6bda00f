import { describe, expect, it } from 'vitest';
import { ACCOUNT, CONTAINER, openWorld } from '../../../test/support/blob-storage.ts';
import { createChunkChecker } from '../../content/chunk-check.ts';
import {
  chunkKey,
  contentKey,
  decodeChunk,
  decodeManifestPage,
  deletionsIn,
  encodeChunk,
  encodeContent,
  encodeManifestPage,
  liveBytesIn,
  liveBytesKey,
  manifestPageKey,
} from '../../content/rows.ts';
import { CorruptChunk, type Extents } from '../../extents/extents.ts';
import { makeMemoryFiles } from '../../extents/memory.ts';
import { openSlotted } from '../../extents/slotted-extents.ts';
import { decodeKey, type Key, keysUnder } from '../../partition/keys.ts';
import type { Row, Transaction } from '../../partition/partition.ts';
import { decodeText, encodeBytes, encodeValue } from '../../partition/values.ts';
import { encodeBlobRecord } from '../blob/blob-record.ts';
import {
  deletedBlobKey,
  deletedStateKey,
  encodeDeletedBlob,
  encodeMark,
  markKey,
  retentionKey,
  snapshotKey,
} from '../blob/old-rows.ts';
import {
  blobKey,
  encodeUncommitted,
  expiryKey,
  inlineKey,
  scheduleContainerDeletion,
  uncommittedKey,
} from '../blob/rows.ts';
import { accountKey, putAccount } from '../common/account-rows.ts';
import { type CheckProgress, check } from './check.ts';

const MIB = 1 << 20;

interface Damage {
  readonly what: string;
  readonly act: (tx: Transaction, world: World) => Promise<unknown> | unknown;
  readonly findings: readonly RegExp[];
}

/** Of the blob `large`, of two chunks, whose content is unshared; and of `staged`, which has three uncommitted blocks. */
const damages: Damage[] = [
  {
    what: 'an account that is gone, and not its rows',
    act: (tx) => tx.remove(accountKey('seven')),
    findings: [/^account 7: it has rows and does not exist/],
  },
  {
    what: 'an account with a damaged key',
    act: (tx) => putAccount(tx, { id: ACCOUNT, name: 'seven', keys: ['?'], from: 'command' }),
    findings: [/"account","seven"\]: key 1 is not base64/],
  },
  {
    what: 'bytes that have no row',
    act: async (tx, { chunks }) => tx.remove(chunks[1]!.key),
    findings: [
      /"l",.*\]: it counts \d+ bytes in use and there are \d+/,
      /"m",.*\]: bytes that it names are missing: chunk \d+-\d+/,
    ],
  },
  {
    what: 'bytes with too many users',
    act: (tx, { chunks }) => tx.put(chunks[0]!.key, encodeChunk({ ...decodeChunk(chunks[0]!), refs: 2 })),
    findings: [/"k",.*\]: it counts 2 users and has 1/],
  },
  {
    what: 'bytes that nothing names',
    act: (tx, { chunks }) => {
      const { place } = decodeChunk(chunks[0]!);
      tx.put(chunkKey(ACCOUNT, { epoch: 1n, number: 1n }), encodeChunk({ place, refs: 1 }));
      tx.add(liveBytesKey(ACCOUNT, place.extent), BigInt(place.length));
    },
    findings: [/"k","1","1"\]: bytes that nothing names/, /chunk 1-1 .*: its bytes .* are not what was written/],
  },
  {
    what: 'a wrong count of live bytes',
    act: (tx, { chunks }) => tx.add(liveBytesKey(ACCOUNT, decodeChunk(chunks[0]!).place.extent), 5n),
    findings: [/"l",.*\]: it counts \d+ bytes in use and there are \d+/],
  },
  {
    what: 'a count of live bytes that is gone',
    act: async (tx) => {
      for (const { key } of await tx.scanUnchecked(liveBytesIn(ACCOUNT), { limit: 10 })) tx.remove(key);
    },
    findings: [/^extent \d+-1: it counts 0 bytes in use and there are \d+/],
  },
  {
    what: 'a content with too many users',
    act: (tx, { content }) =>
      tx.put(contentKey(ACCOUNT, content), encodeContent({ kind: 'list', length: 9 * MIB, refs: 2 })),
    findings: [/"c",.*\]: it counts 2 users and has 1/],
  },
  {
    what: 'a content of another length',
    act: (tx, { content }) => tx.put(contentKey(ACCOUNT, content), encodeContent({ kind: 'list', length: 5, refs: 1 })),
    findings: [/"b",.*"large"\]: its content has 5 bytes, not 9437184/, /"c",.*\]: it has 9437184 bytes, not 5/],
  },
  {
    what: 'a content that is missing',
    act: (tx, { content }) => tx.remove(contentKey(ACCOUNT, content)),
    findings: [/"b",.*"large"\]: its content is missing/, /"m",.*\]: bytes of a content that does not exist/],
  },
  {
    what: 'a blob that is gone without its content',
    act: (tx) => tx.remove(blobKey(ACCOUNT, CONTAINER, 'large')),
    findings: [/"c",.*\]: content that no blob has/],
  },
  {
    what: 'a content whose beginning is gone',
    act: async (tx, { content }) => {
      const row = (await tx.get(manifestPageKey(ACCOUNT, content, 0)))!;
      tx.remove(row.key);
      tx.put(manifestPageKey(ACCOUNT, content, 3), encodeManifestPage(decodeManifestPage(row)));
    },
    findings: [/"c",.*\]: its byte 0 is missing, or is there twice/],
  },
  {
    what: 'a part that reaches past the end of its chunk',
    act: async (tx, { content }) => {
      const [segment] = decodeManifestPage((await tx.get(manifestPageKey(ACCOUNT, content, 0)))!);
      const chunkRefs = segment!.chunkRefs.map((ref) => ({ ...ref, offset: 1 }));
      tx.put(manifestPageKey(ACCOUNT, content, 0), encodeManifestPage([{ ...segment!, chunkRefs }]));
    },
    findings: [/"m",.*\]: bytes that it names have another length: chunk \d+-\d+ has \d+, not \d+/],
  },
  {
    what: 'a segment of another length than its bytes',
    act: async (tx, { content }) => {
      const [segment] = decodeManifestPage((await tx.get(manifestPageKey(ACCOUNT, content, 0)))!);
      const chunkRefs = segment!.chunkRefs.map((ref) => ({ ...ref, length: ref.length + 1 }));
      tx.put(manifestPageKey(ACCOUNT, content, 0), encodeManifestPage([{ ...segment!, chunkRefs }]));
    },
    findings: [/"m",.*\]: bytes that it names have another length: chunk \d+-\d+ has \d+, not \d+/],
  },
  {
    what: 'blocks of a blob that is not there',
    act: (tx) => tx.remove(uncommittedKey(ACCOUNT, CONTAINER, 'staged')),
    findings: [/"y",/, /"y",/, /"y",.*\]: a block that no blob has/],
  },
  {
    what: 'a block too few',
    act: async (tx, { world: { newUncommitted }, uncommittedId, due }) =>
      tx.put(
        uncommittedKey(ACCOUNT, CONTAINER, 'staged'),
        encodeUncommitted({ ...newUncommitted(uncommittedId, tx.now, 4), due }),
      ),
    findings: [/"u",.*"staged"\]: it counts 4 uncommitted blocks and has 3/],
  },
  {
    what: 'blocks that would never expire',
    act: (tx, { due }) => tx.remove(expiryKey(ACCOUNT, due, CONTAINER, 'staged')),
    findings: [/"u",.*"staged"\]: its uncommitted blocks would never expire/],
  },
  {
    what: 'a snapshot without its blob',
    act: async (tx, { content }) => {
      const row = await tx.get(blobKey(ACCOUNT, CONTAINER, 'large'));
      tx.put(snapshotKey(ACCOUNT, CONTAINER, 'gone', 5n), row!.value);
      tx.put(contentKey(ACCOUNT, content), encodeContent({ kind: 'list', length: 9 * MIB, refs: 2 }));
    },
    findings: [/"v",.*"gone",.*\]: a snapshot without its blob/],
  },
  {
    what: 'a snapshot that is not counted, and one without its bytes',
    act: async (tx) => {
      const row = await tx.get(blobKey(ACCOUNT, CONTAINER, 'large'));
      tx.put(snapshotKey(ACCOUNT, CONTAINER, 'large', 5n), row!.value);
      const small = { content: {}, metadata: {}, created: 1n, length: 3, crc64: '' };
      tx.put(snapshotKey(ACCOUNT, CONTAINER, 'large', 6n), encodeBlobRecord(small));
    },
    findings: [/"c",.*\]: it counts 1 users and has 2/, /"v",.*"large",.*\]: its content is missing/],
  },
  {
    what: 'bytes of a snapshot that is gone',
    act: (tx) => tx.put(inlineKey(ACCOUNT, CONTAINER, 'large', 5n), encodeBytes(Buffer.from('abc'))),
    findings: [/"i",.*\]: content that no blob has/],
  },
  {
    what: 'a deleted blob that exists, whose retention would never end',
    act: async (tx, { content }) => {
      const record = decodeText((await tx.get(blobKey(ACCOUNT, CONTAINER, 'large')))!);
      const deleted = { deleted: 5n, until: 9n, stamp: 5n };
      tx.put(deletedBlobKey(ACCOUNT, CONTAINER, 'large'), encodeDeletedBlob(deleted, record));
      tx.put(retentionKey(ACCOUNT, 9n, CONTAINER, 'large', 5n), encodeValue({}));
      tx.put(deletedStateKey(ACCOUNT, CONTAINER, 'large', 6n), encodeDeletedBlob({ ...deleted, stamp: 6n }, record));
      tx.put(contentKey(ACCOUNT, content), encodeContent({ kind: 'list', length: 9 * MIB, refs: 3 }));
    },
    findings: [/"D",.*\]: a deleted blob that exists/, /"V",.*\]: its retention would never end/],
  },
  {
    what: 'a retention of nothing',
    act: (tx) => tx.put(retentionKey(ACCOUNT, 9n, CONTAINER, 'large', 5n), encodeValue({})),
    findings: [/"w","9","retention",.*\]: a retention of nothing/],
  },
  {
    what: 'deleted snapshots that nobody removes',
    act: (tx) => tx.put(markKey(ACCOUNT, CONTAINER, 'large'), encodeMark({ upTo: 5n })),
    findings: [/"v",.*"large"\]: snapshots that would never be removed/],
  },
  {
    what: 'a row that cannot be read',
    act: (tx, { chunks }) => tx.put(chunks[0]!.key, Buffer.from([99])),
    findings: [/"k",.*\]: .*format 99/, /"l",/, /"m",.*\]: bytes that it names are missing/],
  },
];

describe('A check of all rows and bytes', () => {
  it('finds nothing where nothing is wrong, and shows how far it is', async () => {
    const { world } = await open();
    const shown: CheckProgress[] = [];
    const report = await checkAll(world, (progress) => shown.push(progress));
    expect(report).toMatchObject({ containers: 1, blobs: 2, bytes: 9 * MIB + 3, findings: [] });
    const bytes = shown.filter(({ what }) => what === 'reading bytes');
    expect(new Set(bytes.map(({ total }) => total))).toEqual(new Set([9 * MIB + 150]));
    expect(bytes.at(-1)!.done).toBe(9 * MIB + 150);
    expect(shown.find(({ what }) => what === 'checking rows')).toMatchObject({ done: report.rows, total: report.rows });
    await world.stop();
  });

  it('finds nothing wrong in what waits to be swept, or is half swept', async () => {
    const { world, content } = await open();
    await world.sweeper.stop();
    await world.act(async (tx) => {
      await world.store.increfContent(tx, ACCOUNT, content);
      await world.store.decrefContent(tx, ACCOUNT, content);
      tx.remove((await tx.scan(keysUnder([ACCOUNT, 'n']), { limit: 1 }))[0]!.key);
      tx.remove((await tx.scan(keysUnder([ACCOUNT, 'p']), { limit: 1 }))[0]!.key);
      scheduleContainerDeletion(tx, ACCOUNT, CONTAINER);
    });
    expect((await checkAll(world)).findings).toEqual([]);
    const next = await world.restart();
    next.wake();
    for (let left = 1; left > 0; ) {
      await new Promise(setImmediate);
      expect((await checkAll(world)).findings).toEqual([]);
      left = (await world.partition.read((at) => at.scan(deletionsIn(ACCOUNT), { limit: 1 }))).length;
    }
    await next.stop();
  });

  it.each(damages)('names $what', async ({ act, findings }) => {
    const state = await open();
    await state.world.act(async (tx) => {
      await act(tx, state);
    });
    const found = (await checkAll(state.world)).findings;
    expect(found).toEqual(findings.map((finding) => expect.stringMatching(finding)));
    await state.world.stop();
  });

  it('tells of damage around a chunk whose bytes can be read, without calling the blob damaged', async () => {
    const { world } = await open();
    // The first is what was heard before the first chunk.
    const told = [new Error('of another'), new Error('its header')];
    const checker = createChunkChecker(world.partition, world.extents, () => told.shift());
    const { findings } = await check(world.partition, checker);
    expect(findings).toEqual(['its header']);
    await world.stop();
  });

  it('names the blob whose bytes are damaged', async () => {
    const { world, chunks } = await open();
    const bad = decodeChunk(chunks[0]!).place;
    const extents = { ...world.extents, read: failingAt(world.extents, ({ offset }) => offset === bad.offset) };
    const { findings } = await check(world.partition, createChunkChecker(world.partition, extents));
    expect(findings).toEqual(['planted', 'blob seven/box/large: some of its bytes are damaged']);
    await world.stop();
  });

  it('looks chunks up again that a server moves or releases while their bytes are read', async () => {
    const { world, chunks } = await open();
    const [moved, gone] = chunks as [Row, Row];
    const before = decodeChunk(moved).place;
    let isOld = true;
    const read = failingAt(world.extents, ({ extent }) => isOld && extent === before.extent);
    const extents = {
      ...world.extents,
      async read(...given: Parameters<Extents['read']>) {
        if (given[1].extent === 'new') return read(given[0], before, given[2], given[3]);
        await world.act((tx) => {
          const chunk = decodeChunk(moved);
          tx.put(moved.key, encodeChunk({ ...chunk, place: { ...before, extent: 'new' } }));
          tx.remove(gone.key);
        });
        try {
          return await read(...given);
        } finally {
          isOld = false;
        }
      },
    };
    const checker = createChunkChecker(world.partition, extents);
    expect(await checker.check(ACCOUNT, idIn(moved.key), decodeChunk(moved))).toBeUndefined();
    isOld = true;
    expect(await checker.check(ACCOUNT, idIn(gone.key), decodeChunk(gone))).toBeUndefined();
    await world.stop();
  });
});

async function open() {
  const world = await openWorld((epoch) => openSlotted(makeMemoryFiles(), { epoch }));
  await world.putContainer();
  const content = await world.putBlob('large', 9 * MIB);
  const chunks = await world.partition.read((at) => at.scan(keysUnder([ACCOUNT, 'k']), { limit: 10 }));
  await world.putInline('small');
  const uncommittedId = await world.putUncommitted('staged', 3);
  return { world, content, chunks, uncommittedId, due: world.expiries.get('staged')! };
}

type World = Awaited<ReturnType<typeof open>>;

function checkAll(
  { partition, extents }: World['world'],
  onProgress?: (progress: CheckProgress) => void,
): ReturnType<typeof check> {
  return check(partition, createChunkChecker(partition, extents), onProgress);
}

function failingAt(extents: Extents, isBad: (place: Parameters<Extents['read']>[1]) => boolean): Extents['read'] {
  return async (...given) => {
    if (isBad(given[1])) throw new CorruptChunk('planted');
    return extents.read(...given);
  };
}

function idIn(key: Key) {
  const [, , epoch, number] = decodeKey(key) as [bigint, string, bigint, bigint];
  return { epoch, number };
}
