import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { leaseLiftCells } from '../../test/truth-tables/conditions.ts';
import {
  type After,
  type Id,
  type LeaseActionCell,
  leaseActionCells,
  leaseBreakCells,
  leaseElapseCells,
  leaseHistoryCells,
  type Resource,
  type Step,
  situations,
} from '../../test/truth-tables/lease-actions.ts';
import { leaseUseCells, leaseUseOperations, missingBlobCells } from '../../test/truth-tables/lease-use.ts';
import { judgeWrite } from './conditions.ts';
import {
  judgeUse,
  type Lease,
  type LeaseAction,
  type LeaseRefusal,
  type LeaseStep,
  leaseAfterWrite,
  leaseState,
  lockedUntil,
  nextLease,
  normaliseLeaseId,
} from './lease.ts';

const SECOND = 10_000_000n;
const START = 638_000_000_000_000_000n;

interface World {
  lease: Lease | undefined;
  now: bigint;
}

function run(resource: Resource, steps: readonly Step[]): World {
  let world: World = { lease: undefined, now: START };
  for (const step of steps) world = take(resource, world, step);
  return world;
}

function take(resource: Resource, { lease, now }: World, step: Step): World {
  if (step.action === 'wait') return { lease, now: now + BigInt(step.seconds) * SECOND };
  if (step.action === 'read') return { lease, now };
  if (step.action === 'write') {
    const use = resource === 'blob' ? 'write' : 'read';
    expect(judgeUse(lease, step.id, use, now)).toBe('proceed');
    return { lease: resource === 'blob' ? leaseAfterWrite(lease, now) : lease, now };
  }
  const next = nextLease(lease, actionOf(step), now);
  if ('refused' in next) throw new Error(`a step was refused: ${next.refused}`);
  return { lease: next.lease, now };
}

function actionOf(request: LeaseActionCell['request']): LeaseAction {
  return request.action === 'acquire' ? { ...request, newId: 'new' } : request;
}

function seen({ lease, now }: World): After {
  const state = leaseState(lease, now);
  const until = lockedUntil(lease, now);
  return {
    state,
    ...(lease === undefined ? {} : { id: lease.id as Id }),
    ...(until === undefined ? {} : { secondsLeft: Number(until - now) / 1e7 }),
  };
}

function check(resource: Resource, cell: LeaseActionCell) {
  const before = run(resource, cell.steps);
  const next = nextLease(before.lease, actionOf(cell.request), before.now);
  if ('refused' in next) {
    expect(next.refused).toBe(cell.code);
    expect(seen(before)).toEqual(cell.after);
  } else {
    expect(cell.code).toBeUndefined();
    expect(seen({ lease: next.lease, now: before.now })).toEqual(cell.after);
    expect(next.breakSeconds).toBe(cell.breakSeconds);
  }
}

const resourcesOf = (cell: LeaseActionCell): Resource[] => (cell.resource ? [cell.resource] : ['blob', 'container']);

describe('Lease actions', () => {
  it('are known for every action in every state', () => {
    expect(leaseActionCells).toHaveLength(65);
    expect(leaseBreakCells).toHaveLength(24);
    expect(leaseElapseCells).toHaveLength(8);
    expect(leaseHistoryCells).toHaveLength(21);
  });

  for (const cell of [...leaseActionCells, ...leaseBreakCells, ...leaseHistoryCells]) {
    for (const resource of resourcesOf(cell)) {
      it(`${cell.title} (${resource}): ${cell.code ?? cell.after.state}`, () => check(resource, cell));
    }
  }

  for (const cell of leaseElapseCells) {
    it(`${cell.title}: ${cell.after.state}`, () => expect(seen(run('blob', cell.steps))).toEqual(cell.after));
  }

  it('report the rest of a second as a whole one when they break', () => {
    const { lease } = run('blob', [{ action: 'acquire', seconds: 15, proposedId: 'A' }]);
    const broken = nextLease(lease, { action: 'break' }, START + 1n);
    expect(broken).toMatchObject({ breakSeconds: 15, lease: { state: 'breaking', until: START + 15n * SECOND } });
    const late = nextLease(lease, { action: 'break' }, START + 15n * SECOND - 1n);
    expect(late).toMatchObject({ breakSeconds: 1 });
  });

  it('keep an infinite lease infinite when it is renewed or changed', () => {
    const forever: Lease = { id: 'A', state: 'leased', seconds: -1 };
    expect(nextLease(forever, { action: 'renew', id: 'A' }, START)).toEqual({ lease: forever });
    const changed = nextLease(forever, { action: 'change', id: 'A', proposedId: 'B' }, START);
    expect(changed).toEqual({ lease: { ...forever, id: 'B' } });
  });
});

describe('Using what is leased', () => {
  it('is known for every use in every state', () => {
    expect(leaseUseCells).toHaveLength(60);
    expect(leaseUseOperations).toHaveLength(24);
    expect(missingBlobCells).toHaveLength(2);
  });

  for (const cell of leaseUseCells) {
    it(`${cell.title}: ${cell.verdict}`, () => {
      const { lease, now } = run(cell.resource, cell.steps);
      expect(judgeUse(lease, cell.leaseId, cell.use, now)).toBe(cell.verdict);
      const writes = cell.resource === 'blob' && cell.use === 'write' && cell.verdict === 'proceed';
      expect(seen({ lease: writes ? leaseAfterWrite(lease, now) : lease, now })).toEqual(cell.after);
    });
  }

  for (const cell of missingBlobCells) {
    it(cell.title, () => expect(judgeUse(undefined, cell.leaseId, 'write', START)).toBe(cell.verdict));
  }
});

describe('Put Blob with If-None-Match:* on a leased blob', () => {
  for (const cell of leaseLiftCells) {
    const code = 'code' in cell ? cell.code : undefined;
    it(`with ${cell.title}: ${code ?? 'proceeds'}`, () => {
      const { lease, now } = run('blob', situations[cell.state].steps);
      const leaseId = 'leaseId' in cell ? cell.leaseId : undefined;
      const use = judgeUse(lease, leaseId, 'write', now);
      const kind = { creates: true, leaseHeld: leaseId !== undefined };
      const verdict =
        use === 'proceed' ? judgeWrite({ etag: '0x1', modified: START }, { ifNoneMatch: '*' }, kind) : use;
      expect(verdict).toBe(code?.replace('WithBlobOperation', '') ?? 'proceed');
    });
  }
});

/** A lease as a person would keep it on paper: whole seconds, the state written down and turned over as time passes. */
class Model {
  state: 'available' | 'leased' | 'breaking' | 'broken' | 'expired' = 'available';
  holder = '';
  length = 0;
  left = Number.POSITIVE_INFINITY;

  wait(seconds: number) {
    this.left -= seconds;
    if (this.left > 0) return;
    if (this.state === 'leased') this.state = 'expired';
    if (this.state === 'breaking') this.state = 'broken';
  }

  arm(holder: string, length: number) {
    Object.assign(this, { state: 'leased', holder, length, left: length === -1 ? Number.POSITIVE_INFINITY : length });
    return 'ok';
  }

  acquire(length: number, wanted: string | undefined) {
    switch (this.state) {
      case 'leased':
        return wanted === this.holder ? this.arm(wanted, length) : 'LeaseAlreadyPresent';
      case 'breaking':
        return wanted === this.holder ? 'LeaseIsBreakingAndCannotBeAcquired' : 'LeaseAlreadyPresent';
      default:
        return this.arm(wanted ?? 'new', length);
    }
  }

  renew(id: string) {
    if (this.state === 'available' || id !== this.holder) return 'LeaseIdMismatchWithLeaseOperation';
    if (this.state === 'breaking' || this.state === 'broken') return 'LeaseIsBrokenAndCannotBeRenewed';
    return this.arm(id, this.length);
  }

  change(id: string, wanted: string) {
    if (this.state === 'leased') {
      if (id !== this.holder && wanted !== this.holder) return 'LeaseIdMismatchWithLeaseOperation';
      this.holder = wanted;
      return 'ok';
    }
    if (this.state !== 'breaking') return 'LeaseNotPresentWithLeaseOperation';
    return id === this.holder ? 'LeaseIsBreakingAndCannotBeChanged' : 'LeaseIdMismatchWithLeaseOperation';
  }

  release(id: string) {
    if (this.state === 'available' || id !== this.holder) return 'LeaseIdMismatchWithLeaseOperation';
    this.state = 'available';
    return 'ok';
  }

  break(period: number | undefined) {
    if (this.state === 'available') return 'LeaseNotPresentWithLeaseOperation';
    if (this.state === 'expired' || this.state === 'broken') this.left = 0;
    else if (period !== undefined) this.left = Math.min(this.left, period);
    else if (this.left === Number.POSITIVE_INFINITY) this.left = 0;
    this.state = this.left > 0 ? 'breaking' : 'broken';
    return `ok, ${this.left}`;
  }

  use(id: string | undefined, writes: boolean) {
    const locked = this.state === 'leased' || this.state === 'breaking';
    if (id === undefined && locked && writes) return 'LeaseIdMissing';
    if (id !== undefined && this.state === 'available') return 'LeaseNotPresent';
    if (id !== undefined && !locked) return 'LeaseLost';
    if (id !== undefined && id !== this.holder) return 'LeaseIdMismatch';
    if (writes && !locked) this.state = 'available';
    return 'proceed';
  }
}

const anId = fc.constantFrom('A', 'B', 'C');
const maybeId = fc.option(anId, { nil: undefined });
const aLength = fc.oneof(fc.constant(-1), fc.integer({ min: 15, max: 60 }));
const aPeriod = fc.option(fc.integer({ min: 0, max: 60 }), { nil: undefined });
const anEvent = fc.oneof(
  fc.record({ event: fc.constant('acquire' as const), length: aLength, wanted: maybeId }),
  fc.record({ event: fc.constant('renew' as const), id: anId }),
  fc.record({ event: fc.constant('change' as const), id: anId, wanted: anId }),
  fc.record({ event: fc.constant('release' as const), id: anId }),
  fc.record({ event: fc.constant('break' as const), period: aPeriod }),
  fc.record({ event: fc.constant('use' as const), id: maybeId, writes: fc.boolean() }),
  fc.record({ event: fc.constant('wait' as const), seconds: fc.integer({ min: 1, max: 40 }) }),
);
type Event = typeof anEvent extends fc.Arbitrary<infer T> ? T : never;

function askModel(model: Model, event: Event): string | undefined {
  switch (event.event) {
    case 'acquire':
      return model.acquire(event.length, event.wanted);
    case 'renew':
      return model.renew(event.id);
    case 'change':
      return model.change(event.id, event.wanted);
    case 'release':
      return model.release(event.id);
    case 'break':
      return model.break(event.period);
    case 'use':
      return model.use(event.id, event.writes);
    case 'wait':
      model.wait(event.seconds);
  }
}

function askRules(world: World, event: Event): string | undefined {
  const act = (action: LeaseAction) => {
    const next = nextLease(world.lease, action, world.now);
    if (!('refused' in next)) world.lease = next.lease;
    return told(next);
  };
  switch (event.event) {
    case 'acquire':
      return act({ action: 'acquire', seconds: event.length, proposedId: event.wanted, newId: 'new' });
    case 'renew':
      return act({ action: 'renew', id: event.id });
    case 'change':
      return act({ action: 'change', id: event.id, proposedId: event.wanted });
    case 'release':
      return act({ action: 'release', id: event.id });
    case 'break':
      return act({ action: 'break', periodSeconds: event.period });
    case 'use': {
      const verdict = judgeUse(world.lease, event.id, event.writes ? 'write' : 'read', world.now);
      if (verdict === 'proceed' && event.writes) world.lease = leaseAfterWrite(world.lease, world.now);
      return verdict;
    }
    case 'wait':
      world.now += BigInt(event.seconds) * SECOND;
  }
}

function told(next: LeaseStep | LeaseRefusal): string {
  if ('refused' in next) return next.refused;
  return next.breakSeconds === undefined ? 'ok' : `ok, ${next.breakSeconds}`;
}

describe('A lease over time', () => {
  it('does what a naive model does, whatever happens to it', () => {
    fc.assert(
      fc.property(fc.array(anEvent, { maxLength: 40 }), (events) => {
        const model = new Model();
        const world: World = { lease: undefined, now: START };
        for (const event of events) {
          expect(askRules(world, event)).toBe(askModel(model, event));
          expect(leaseState(world.lease, world.now)).toBe(model.state);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('is judged alike until the instant that lockedUntil gives, and differently from then on', () => {
    const { lease } = run('blob', [{ action: 'acquire', seconds: 15, proposedId: 'A' }]);
    const until = lockedUntil(lease, START)!;
    expect(judgeUse(lease, undefined, 'write', until - 1n)).toBe('LeaseIdMissing');
    expect(judgeUse(lease, undefined, 'write', until)).toBe('proceed');
    expect(lockedUntil(lease, until)).toBeUndefined();
  });
});

describe('A lease id', () => {
  const dashed = '0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9';

  it.each([
    dashed,
    dashed.toUpperCase(),
    ` ${dashed} `,
    dashed.replaceAll('-', ''),
    `{${dashed}}`,
    `(${dashed})`,
    '{0x0a1b2c3d,0x4e5f,0x6071,{0x82,0x93,0xa4,0xb5,0xc6,0xd7,0xe8,0xf9}}',
    '{0xA1B2C3D, 0x4E5F, 0x6071, {0x82, 0x93, 0xA4, 0xB5, 0xC6, 0xD7, 0xE8, 0xF9}}',
  ])('is taken as %s', (text) => expect(normaliseLeaseId(text)).toBe(dashed));

  it.each([
    '',
    'x',
    dashed.slice(1),
    `${dashed}0`,
    `{${dashed}`,
    `{${dashed})`,
    `({${dashed}})`,
    `{${dashed.replaceAll('-', '')}}`,
    dashed.replace('-', ''),
    dashed.replace('a', 'g'),
    '{0x0a1b2c3d,0x4e5f,0x6071,{0x82,0x93,0xa4,0xb5,0xc6,0xd7,0xe8}}',
    '{0x10a1b2c3d,0x4e5f,0x6071,{0x82,0x93,0xa4,0xb5,0xc6,0xd7,0xe8,0xf9}}',
  ])('is refused as %j', (text) => expect(normaliseLeaseId(text)).toBeUndefined());
});
