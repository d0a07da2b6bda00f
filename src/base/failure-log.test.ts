import { expect, it } from 'vitest';
import { createFailureLog } from './failure-log.ts';

it('A failure is logged when it begins and when it ends, with its duration', () => {
  let now = 5_000;
  const told: unknown[] = [];
  const warn = (fields: object, text: string) => told.push([text, fields]);
  const log = { warn, debug: () => {} } as unknown as Parameters<typeof createFailureLog>[0];
  const outage = createFailureLog(log, { begins: 'it fails', isOver: 'it works' }, () => now);
  outage.succeeded();
  expect([told, outage.isFailing]).toEqual([[], false]);
  for (const reason of ['first', 'second', 'third']) {
    outage.failed(reason);
    now += 4_120;
  }
  expect([told, outage.isFailing]).toEqual([[['it fails', { err: 'first' }]], true]);
  outage.succeeded();
  outage.succeeded();
  expect([told.slice(1), outage.isFailing]).toEqual([[['it works', { seconds: 12.4 }]], false]);
  outage.failed('another');
  expect(told.slice(2)).toEqual([['it fails', { err: 'another' }]]);
});
