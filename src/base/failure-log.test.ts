import { expect, it } from 'vitest';
import { createOutage } from './failure-log.ts';

it('An outage is told when it begins and when it is over, with how long it was', () => {
  let now = 5_000;
  const told: unknown[] = [];
  const warn = (fields: object, text: string) => told.push([text, fields]);
  const log = { warn, debug: () => {} } as unknown as Parameters<typeof createOutage>[0];
  const outage = createOutage(log, { begins: 'it fails', isOver: 'it works' }, () => now);
  outage.worked();
  expect([told, outage.isOn]).toEqual([[], false]);
  for (const reason of ['first', 'second', 'third']) {
    outage.failed(reason);
    now += 4_120;
  }
  expect([told, outage.isOn]).toEqual([[['it fails', { err: 'first' }]], true]);
  outage.worked();
  outage.worked();
  expect([told.slice(1), outage.isOn]).toEqual([[['it works', { seconds: 12.4 }]], false]);
  outage.failed('another');
  expect(told.slice(2)).toEqual([['it fails', { err: 'another' }]]);
});
