import { expect, it } from 'vitest';
import { countOutcomes, readSubunit } from './torture.mjs';

const printed = `time: 2026-11-17 21:31:28.467114
progress: 4
test: simple
success: simple
test: wrong
failure: wrong [
../../source4/torture/smb2/rename.c:1: status was NT_STATUS_OK
]
test: needless
skip: needless [
not here
]
test: hangs
`;

it('Outcomes are read from the output of smbtorture, and a subtest that did not end has failed', () => {
  const { outcomes, reasons } = readSubunit(printed, 'smb2.rename');
  expect([...outcomes]).toEqual([
    ['smb2.rename.simple', 'passed'],
    ['smb2.rename.wrong', 'failed'],
    ['smb2.rename.needless', 'skipped'],
    ['smb2.rename.hangs', 'failed'],
  ]);
  expect(reasons.get('smb2.rename.wrong')).toContain('NT_STATUS_OK');
  expect(countOutcomes(outcomes)).toEqual({ passed: 1, failed: 2, skipped: 1 });
});

it('A suite of one test has the name of the suite', () => {
  expect([...readSubunit('test: connect\nsuccess: connect\n', 'smb2.connect').outcomes.keys()]).toEqual([
    'smb2.connect',
  ]);
});
