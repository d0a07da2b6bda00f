import { describe, expect, it } from 'vitest';
import {
  copyCells,
  HIGH_SECONDS,
  STANDARD_SECONDS,
  setTierCells,
  type TierSituation,
  tierNames,
  tierSituations,
} from '../../test/truth-tables/tiers.ts';
import {
  isArchived,
  isPremiumTier,
  nextTier,
  parseRehydratePriority,
  parseTier,
  REHYDRATION_SECONDS,
  type StoredTier,
  type TierRequest,
  tierAfterWrite,
  tierOfCopy,
  tierState,
  tierValidators,
} from './tiers.ts';

const SECOND = 10_000_000n;
const START = 638_000_000_000_000_000n;

interface World {
  readonly stored: StoredTier | undefined;
  readonly now: bigint;
}

function reach({ steps }: TierSituation): World {
  let world: World = { stored: undefined, now: START };
  for (const step of steps) {
    if (typeof step === 'number') {
      world = { ...world, now: world.now + BigInt(step) * SECOND };
      continue;
    }
    const next = nextTier(world.stored, request(step), world.now, STANDARD_SECONDS);
    if ('refused' in next) throw new Error(`a step was refused: ${next.refused}`);
    world = { ...world, stored: next.next };
  }
  return world;
}

function request([tier, priority]: readonly [TierRequest['tier'], TierRequest['priority']?]): TierRequest {
  return { tier, priority };
}

function seen(stored: StoredTier | undefined, now: bigint) {
  const { tier, rehydration } = tierState(stored, now);
  return { tier, pending: rehydration && [rehydration.to, rehydration.priority] };
}

describe('tierValidators', () => {
  it('has the instant of the last change: of a rehydration that is over, its end', () => {
    const due = START + 5n * SECOND;
    const rehydration = { to: 'Hot', due, priority: 'Standard' } as const;
    const pending: StoredTier = { tier: 'Archive', changed: START, rehydration };
    expect(tierValidators(undefined, START).modified).toBe(0n);
    expect(tierValidators({ tier: 'Cool', changed: START }, due).modified).toBe(START);
    expect(tierValidators(pending, due - 1n).modified).toBe(START);
    expect(tierValidators(pending, due).modified).toBe(due);
  });
});

describe('Set Blob Tier', () => {
  it.each(setTierCells.map((cell) => [cell.title, cell] as const))('%s', (_, cell) => {
    const { stored, now } = reach(cell.situation);
    const next = nextTier(stored, request(cell.request), now, STANDARD_SECONDS);
    if ('refused' in next) {
      expect([409, next.refused]).toEqual([cell.status, 'BlobBeingRehydrated']);
      expect(seen(stored, now)).toEqual({ pending: undefined, ...cell.after });
    } else {
      expect(next.isPending ? 202 : 200).toBe(cell.status);
      expect(seen(next.next, now)).toEqual({ pending: undefined, ...cell.after });
    }
  });

  it('changes the time of the change with the tier, with the beginning and with the end of a rehydration', () => {
    const later = START + 9n * SECOND;
    const cool = step(undefined, 'Cool', START);
    expect(tierState(cool, later).changed).toBe(START);
    expect(step(cool, 'Cool', later)).toBe(cool);
    const archived = step(cool, 'Archive', later);
    expect(tierState(archived, later).changed).toBe(later);
    const pending = step(archived, 'Hot', later + SECOND);
    expect(tierState(pending, later + SECOND).changed).toBe(later + SECOND);
    expect(tierState(pending, later + 6n * SECOND - 1n)).toMatchObject({ tier: 'Archive' });
    expect(tierState(pending, later + 6n * SECOND)).toMatchObject({ tier: 'Hot', changed: later + 6n * SECOND });
    expect(step(pending, 'Hot', later + 7n * SECOND)).toBe(pending);
  });

  it('never makes a rehydration that is hastened last longer', () => {
    const archived = step(undefined, 'Archive', START);
    const pending = step(archived, 'Hot', START);
    const late = START + BigInt(STANDARD_SECONDS) * SECOND - 1n;
    const hastened = nextTier(pending, { tier: 'Hot', priority: 'High' }, late, STANDARD_SECONDS);
    expect(hastened).toMatchObject({ next: { rehydration: { due: pending.rehydration!.due, priority: 'High' } } });
    const early = nextTier(pending, { tier: 'Hot', priority: 'High' }, START, STANDARD_SECONDS);
    expect(early).toMatchObject({ next: { rehydration: { due: START + BigInt(HIGH_SECONDS) * SECOND } } });
  });

  it('takes the seconds of the table by default, and none if there are none', () => {
    expect(REHYDRATION_SECONDS).toBe(STANDARD_SECONDS);
    const archived = step(undefined, 'Archive', START);
    const at = nextTier(archived, { tier: 'Cool', priority: undefined }, START, 0);
    expect('next' in at && tierState(at.next, START).tier).toBe('Cool');
  });
});

function step(stored: StoredTier | undefined, tier: TierRequest['tier'], now: bigint): StoredTier {
  const next = nextTier(stored, { tier, priority: undefined }, now, STANDARD_SECONDS);
  if ('refused' in next) throw new Error(next.refused);
  return next.next;
}

describe('A copy', () => {
  it.each(copyCells.map((cell) => [cell.title, cell] as const))('%s', (_, { source, tier, code, after }) => {
    const { stored, now } = reach(source);
    const next = tierOfCopy(stored, undefined, { tier, priority: undefined }, now, STANDARD_SECONDS);
    if ('refused' in next) expect(next.refused).toBe(code);
    else expect(seen(next.next, now)).toEqual({ pending: undefined, ...after });
  });

  it('of high priority comes out of the archive sooner', () => {
    const { stored, now } = reach(tierSituations.find(({ name }) => name === 'Archive')!);
    const next = tierOfCopy(stored, undefined, { tier: 'Hot', priority: 'High' }, now, STANDARD_SECONDS);
    expect(next).toMatchObject({ next: { rehydration: { due: now + BigInt(HIGH_SECONDS) * SECOND } } });
  });
});

describe('A blob', () => {
  it.each(tierSituations.map((situation) => [situation.name, situation] as const))(
    'that is %s is archived or is not, and hands its tier on to what replaces it',
    (_, situation) => {
      const { stored, now } = reach(situation);
      expect(isArchived(stored, now)).toBe(situation.tier === 'Archive');
      for (const tier of tierNames) expect(tierAfterWrite(stored, tier, now)).toEqual({ tier, changed: now });
      if (situation.tier === 'Archive') return;
      const kept = tierAfterWrite(stored, undefined, now);
      expect(tierState(kept, now)).toEqual(tierState(stored, now));
      expect(kept === undefined).toBe(situation.steps.length === 0);
    },
  );
});

describe('The name of a tier', () => {
  it('is one of four; page blobs and premium accounts have others', () => {
    for (const tier of tierNames) expect(parseTier(tier)).toBe(tier);
    for (const text of ['', 'hot', 'Warm', 'P4', 'Smart']) expect(parseTier(text)).toBeUndefined();
    for (const text of ['P4', 'P10', 'P80', 'Premium']) expect(isPremiumTier(text)).toBe(true);
    for (const text of ['', 'Hot', 'P', 'P5', 'P100']) expect(isPremiumTier(text)).toBe(false);
    expect(['Standard', 'High', 'high', ''].map(parseRehydratePriority)).toEqual([
      'Standard',
      'High',
      undefined,
      undefined,
    ]);
  });
});
