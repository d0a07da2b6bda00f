/** Every cell of the lease tables, asked of a server over HTTP. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  call,
  createBlob,
  createContainer,
  createSource,
  leaseIds,
  look,
  sendLease,
  stillServer,
  type Target,
  takeStep,
} from '../support/frozen-clock-server.ts';
import {
  type After,
  type LeaseActionCell,
  leaseActionCells,
  leaseBreakCells,
  leaseElapseCells,
  leaseHistoryCells,
  type Resource,
  type Step,
} from '../truth-tables/lease-actions.ts';
import {
  type LeaseUseOperation,
  leaseUseCells,
  leaseUseOperations,
  missingBlobCells,
} from '../truth-tables/lease-use.ts';

const server = stillServer();
let made = 0;
/** Of the container that holds all blobs, when it was new. */
let homeEtag: string | undefined;
const HOME = '/home-of-blobs';
/** How close to its end a lease is looked at. */
const MOMENT_SECONDS = 0.01;
const both: Resource[] = ['blob', 'container'];

beforeAll(async () => {
  await createSource(server);
  homeEtag = (await look(server, await createContainer(server, HOME))).headers.etag;
});

async function newTarget(
  resource: Resource,
  steps: readonly Step[],
  type?: LeaseUseOperation['type'],
): Promise<Target> {
  made += 1;
  const target =
    resource === 'blob'
      ? await createBlob(server, `${HOME}/${made}`, type)
      : await createContainer(server, `/container-${made}`);
  for (const step of steps) await takeStep(server, target, step);
  return target;
}

/** State that a lease must not change. */
async function identityOf(target: Target) {
  const { headers } = await look(server, target);
  return { etag: headers.etag, lastModified: headers['last-modified'] };
}

async function expectState(target: Target, { state, secondsLeft }: After): Promise<void> {
  const locked = state === 'leased' || state === 'breaking';
  const held = state === 'leased' ? (secondsLeft === undefined ? 'infinite' : 'fixed') : undefined;
  const answers = [await look(server, target)];
  if (target.resource === 'blob') answers.push(await call(server, 'Get Blob', target));
  for (const { headers } of answers) {
    expect(headers['x-ms-lease-state']).toBe(state);
    expect(headers['x-ms-lease-status']).toBe(locked ? 'locked' : 'unlocked');
    expect(headers['x-ms-lease-duration']).toBe(held);
  }
}

/** Ends the lease: the seconds that it has left are waited for, and its id proves itself by releasing it. */
async function expectLease(target: Target, after: After, newId?: string): Promise<void> {
  await expectState(target, after);
  if (after.secondsLeft !== undefined) {
    await server.wait(after.secondsLeft - MOMENT_SECONDS);
    await expectState(target, after);
    await server.wait(MOMENT_SECONDS);
    await expectState(target, { state: after.state === 'leased' ? 'expired' : 'broken' });
  } else {
    await server.wait(3600);
    await expectState(target, after);
  }
  const releaseWith = (id: string) => {
    const headers = { 'x-ms-lease-action': 'release', 'x-ms-lease-duration': undefined, 'x-ms-lease-id': id };
    return call(server, target.resource === 'blob' ? 'Lease Blob' : 'Lease Container', target, headers);
  };
  const id = after.id === 'new' ? newId : after.id && leaseIds[after.id];
  for (const other of Object.values(leaseIds)) {
    if (other !== id) expect((await releaseWith(other)).code).toBe('LeaseIdMismatchWithLeaseOperation');
  }
  if (id === undefined) return;
  expect((await releaseWith(id)).status).toBe(200);
  await expectState(target, { state: 'available' });
}

async function checkAction(resource: Resource, cell: LeaseActionCell): Promise<void> {
  const target = await newTarget(resource, cell.steps);
  const before = await identityOf(target);
  const { status, code, headers } = await sendLease(server, target, cell.request);
  expect({ status, code }).toEqual({ status: cell.status, code: cell.code });
  expect(headers['x-ms-lease-time']).toBe(cell.breakSeconds?.toString());
  const newId = headers['x-ms-lease-id'] as string | undefined;
  if (cell.code === undefined) {
    expect({ etag: headers.etag, lastModified: headers['last-modified'] }).toEqual(before);
    const { action } = cell.request;
    if (action === 'break' || action === 'release') expect(newId).toBeUndefined();
    else if (cell.after.id === 'new') expect(newId).toMatch(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    else expect(newId).toBe(leaseIds[cell.after.id!]);
  }
  await expectLease(target, cell.after, newId);
  expect(await identityOf(target)).toEqual(before);
}

describe('Lease Blob and Lease Container', () => {
  const actionRuns = [...leaseActionCells, ...leaseBreakCells, ...leaseHistoryCells].flatMap((cell) =>
    (cell.resource ? [cell.resource] : both).map((resource) => ({ resource, cell })),
  );
  const elapseRuns = leaseElapseCells.flatMap((cell) => both.map((resource) => ({ resource, cell })));

  it('are asked for every cell', () => {
    expect(leaseActionCells).toHaveLength(65);
    expect(leaseBreakCells).toHaveLength(24);
    expect(leaseHistoryCells).toHaveLength(21);
    // Twelve of the histories are only of a blob or only of a container.
    expect(actionRuns).toHaveLength(2 * (65 + 24 + 21) - 12);
    expect(elapseRuns).toHaveLength(2 * 8);
  });

  for (const { resource, cell } of actionRuns) {
    it(`${cell.title} (${resource}): ${cell.code ?? cell.after.state}`, () => checkAction(resource, cell));
  }

  for (const { resource, cell } of elapseRuns) {
    it(`${cell.title} (${resource}): ${cell.after.state}`, async () => {
      const target = await newTarget(resource, cell.steps);
      await expectLease(target, cell.after);
    });
  }
});

describe('Using what is leased', () => {
  const runs = leaseUseCells.flatMap((cell) =>
    leaseUseOperations
      .filter(({ resource, use }) => resource === cell.resource && use === cell.use)
      .map(({ operation, status, type }) => ({ cell, operation, status, type })),
  );

  it('is asked for every cell and every operation', () => {
    expect(leaseUseCells).toHaveLength(60);
    expect(leaseUseOperations).toHaveLength(24);
    expect(runs).toHaveLength(15 * 24);
    expect(new Set(runs.map(({ operation }) => operation)).size).toBe(24);
  });

  for (const { cell, operation, status, type } of runs) {
    it(`${operation}: ${cell.title}: ${cell.verdict}`, async () => {
      const target = await newTarget(cell.resource, cell.steps, type);
      const before = await identityOf(target);
      const answer = await call(server, operation, target, {
        'x-ms-lease-id': cell.leaseId && leaseIds[cell.leaseId],
      });
      expect({ status: answer.status, code: answer.code }).toEqual(
        cell.verdict === 'proceed' ? { status, code: undefined } : { status: 412, code: cell.code },
      );
      const proceeded = cell.verdict === 'proceed';
      if (proceeded && operation.startsWith('Delete')) {
        expect((await look(server, target)).status).toBe(404);
        return;
      }
      const after = await identityOf(target);
      if (proceeded && /^(?:Put|Set|Append|Clear) /.test(operation)) expect(after.etag).not.toBe(before.etag);
      else expect(after).toEqual(before);
      await expectLease(target, cell.after);
    });
  }

  it.each(missingBlobCells)('$title', async ({ leaseId, status, code }) => {
    made += 1;
    const target: Target = { resource: 'blob', path: `${HOME}/${made}` };
    const answer = await call(server, 'Put Blob', target, { 'x-ms-lease-id': leaseId && leaseIds[leaseId] });
    expect({ status: answer.status, code: answer.code }).toEqual({ status, code });
    expect((await look(server, target)).status).toBe(status === 201 ? 200 : 404);
  });

  it('asks for the two blobs that are missing', () => expect(missingBlobCells).toHaveLength(2));
});

describe('A container', () => {
  it('keeps ETag and Last-Modified whatever is done to its blobs', async () => {
    const home: Target = { resource: 'container', path: HOME };
    await server.wait(1);
    const blob = await createBlob(server, `${HOME}/last`);
    await takeStep(server, blob, { action: 'write' });
    await takeStep(server, blob, { action: 'acquire', seconds: -1 });
    await takeStep(server, blob, { action: 'break' });
    expect((await call(server, 'Delete Blob', blob)).status).toBe(202);
    expect((await identityOf(home)).etag).toBe(homeEtag);
  });

  it('that is leased lets its blobs be written, and its lease is not asked for', async () => {
    const container = await newTarget('container', [{ action: 'acquire', seconds: 30, proposedId: 'A' }]);
    const before = await identityOf(container);
    const blob = await createBlob(server, `${container.path}/blob`);
    const withId = await call(server, 'Put Blob', blob, { 'x-ms-lease-id': leaseIds.A });
    expect(withId.code).toBe('LeaseNotPresentWithBlobOperation');
    expect((await call(server, 'Delete Blob', blob)).status).toBe(202);
    expect(await identityOf(container)).toEqual(before);
    await expectLease(container, { state: 'leased', id: 'A', secondsLeft: 30 });
  });
});
