import { beforeEach, describe, expect, it } from 'vitest';
import { measure } from '../../src/content/ranges/map-page.ts';
import { decodeMapPage, encodeMapPage } from '../../src/content/ranges/map-page-codec.ts';
import { heldKey, mapPageKey, olderPageKey, updateRanges } from '../../src/content/ranges/map-rows.ts';
import { pieceKey } from '../../src/content/ranges/pieces.ts';
import type { ContentId } from '../../src/content/rows.ts';
import { openMemory } from '../../src/partition/memory/engine.ts';
import type { Transaction } from '../../src/partition/partition.ts';
import { encodeBytes, encodeValue } from '../../src/partition/values.ts';
import { ACCOUNT, openRangeWorld, type RangeWorld } from '../support/range-map-world.ts';

interface Damage {
  readonly what: string;
  readonly act: (tx: Transaction, id: ContentId) => Promise<void> | void;
  readonly findings: readonly RegExp[];
}

const readPage = async (tx: Transaction, id: ContentId) => decodeMapPage((await tx.get(mapPageKey(ACCOUNT, id, 0)))!);

/** Of a content with one snapshot, a piece that was written after it, and an older page. */
const damages: Damage[] = [
  {
    what: 'a piece that is missing',
    act: async (tx, id) => tx.remove(pieceKey(ACCOUNT, id, 0, await lastPiece(tx, id))),
    findings: [/"M",.*bytes that it names are missing: piece/],
  },
  {
    what: 'a piece of another length',
    act: async (tx, id) => tx.put(pieceKey(ACCOUNT, id, 0, await lastPiece(tx, id)), encodeBytes(Buffer.from('x'))),
    findings: [/"M",.*bytes that it names have another length: piece \d+ has 1/],
  },
  {
    what: 'a piece that no page names',
    act: (tx, id) => tx.put(pieceKey(ACCOUNT, id, 0, 99), encodeBytes(Buffer.from('x'))),
    findings: [/"I",.*bytes that nothing names/],
  },
  {
    what: 'a piece of a page that does not exist',
    act: (tx, id) => tx.put(pieceKey(ACCOUNT, id, 5 << 20, 0), encodeBytes(Buffer.from('x'))),
    findings: [/"I",.*bytes that nothing names/],
  },
  {
    what: 'a page that waits for a merge that nobody makes',
    act: async (tx, id) => {
      tx.put(mapPageKey(ACCOUNT, id, 0), encodeMapPage({ ...(await readPage(tx, id)), isQueued: true }));
    },
    findings: [/"M",.*it would never be merged/],
  },
  {
    what: 'a page from the future',
    act: async (tx, id) => {
      tx.put(mapPageKey(ACCOUNT, id, 0), encodeMapPage({ ...(await readPage(tx, id)), born: 9 }));
    },
    findings: [/"M",.*it was written in generation 9, after/],
  },
  {
    what: 'an older page that nothing needs',
    act: async (tx, id) => {
      const page = { ...(await readPage(tx, id)), segments: [], born: 2 };
      tx.put(olderPageKey(ACCOUNT, id, 0, 3), encodeMapPage(page));
    },
    findings: [/"o",.*(an older page that nothing needs|it lived from 2 to 3)/],
  },
  {
    what: 'a generation that nothing shows',
    act: async (tx, id) => {
      tx.put(heldKey(ACCOUNT, id, 2), encodeValue({}));
      await updateRanges(tx, ACCOUNT, id, { gen: 3, newest: 2 });
    },
    findings: [/"N",.*a generation that nothing shows/],
  },
  {
    what: 'a newest generation that is another',
    act: (tx, id) => updateRanges(tx, ACCOUNT, id, { newest: 0 }),
    findings: [/"c",.*its newest generation is 1, not 0/],
  },
  {
    what: 'a void that nobody applies',
    act: (tx, id) => updateRanges(tx, ACCOUNT, id, { voids: [{ number: 1, from: 0, to: 1, gen: 2 }], lastVoid: 1 }),
    findings: [/"c",.*void 1 would never be applied/],
  },
  {
    what: 'a state that has ended and is in use',
    act: (tx, id) => updateRanges(tx, ACCOUNT, id, { isEnded: true }),
    findings: [/"M",.*an older page that nothing needs/, /"c",.*a state that has ended is in use/],
  },
];

/** Of a content whose tail has two pieces. */
const tailDamages: Damage[] = [
  {
    what: 'a missing piece of a tail, by the pieces after it',
    act: (tx, id) => tx.remove(pieceKey(ACCOUNT, id, 0, 1)),
    findings: [/"I",.*bytes that nothing names/],
  },
  {
    what: 'a piece of a tail that is too short, by the pieces after it',
    act: (tx, id) => tx.put(pieceKey(ACCOUNT, id, 0, 1), encodeBytes(Buffer.from('x'))),
    findings: [/"I",.*bytes that nothing names/],
  },
  {
    what: 'a tail that its page names, too',
    act: (tx, id) => updateRanges(tx, ACCOUNT, id, { tail: { offset: 0, from: 0, piece: 0 } }),
    findings: [/"I",.*bytes that two name/, /"I",.*bytes that nothing names/, /"I",.*bytes that nothing names/],
  },
];

async function lastPiece(tx: Transaction, id: ContentId): Promise<number> {
  return measure((await readPage(tx, id)).segments).pieces.at(-1)!.piece;
}

describe('A check of contents that change in place', () => {
  let world: RangeWorld;
  let id: ContentId;

  beforeEach(async () => {
    world = await openRangeWorld(openMemory());
    id = world.newId();
    await world.create(id);
    await world.write(id, 0, 1, 1);
    await world.hold(id);
    await world.write(id, 5, 1, 2);
    return () => world.close();
  });

  it('finds nothing where nothing is wrong', async () => {
    expect(await world.findings()).toEqual([]);
  });

  const expectFindings = async ({ act, findings }: Damage, content: ContentId) => {
    await world.damage(async (tx) => {
      await act(tx, content);
    });
    expect(await world.findings()).toEqual(findings.map((finding) => expect.stringMatching(finding)));
  };

  it.each(damages)('names $what', (damage) => expectFindings(damage, id));

  it.each(tailDamages)('names $what', async (damage) => {
    const other = world.newId();
    await world.create(other);
    await world.write(other, 0, 1, 1);
    await world.append(other, 1, [2, 3]);
    expect(await world.findings()).toEqual([]);
    await expectFindings(damage, other);
  });
});
