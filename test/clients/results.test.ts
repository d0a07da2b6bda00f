/** The results that `npm run test:clients` counts: what test programs print, and which failures are known. */
import { describe, expect, it } from 'vitest';
import { formatTable, unknownFailures } from './report.mjs';
import { parseCargoTest, parseGoTest, parseJsonLines } from './results.mjs';

describe('results of test programs', () => {
  it('are JSON objects, one a line, among other lines', () => {
    const printed = 'a warning\n{"title":"one"}\n{"title":"two","fault":"why"}\n';
    expect(parseJsonLines(printed)).toEqual([{ title: 'one' }, { title: 'two', fault: 'why' }]);
  });

  it('of Go count the tests that have no tests below them', () => {
    const printed = [
      '=== RUN   TestA',
      '=== RUN   TestA/One',
      '    a_test.go:7: Error: Not equal: 1, 2',
      '=== RUN   TestA/Two',
      '--- FAIL: TestA (0.10s)',
      '    --- FAIL: TestA/One (0.05s)',
      '    --- SKIP: TestA/Two (0.00s)',
      '--- PASS: TestB (0.00s)',
      'FAIL',
    ].join('\n');
    expect(parseGoTest(printed)).toEqual([
      { title: 'TestA/One', fault: expect.stringContaining('Not equal: 1, 2') },
      { title: 'TestA/Two', skipped: true },
      { title: 'TestB' },
    ]);
  });

  it('of Go count a test that failed although all below it passed', () => {
    const printed = '=== RUN   TestA\n--- FAIL: TestA (0.1s)\n    --- PASS: TestA/One (0.0s)\n';
    expect(parseGoTest(printed).filter(({ fault }) => fault !== undefined)).toEqual([
      { title: 'TestA', fault: expect.anything() },
    ]);
  });

  it('of Rust have the output of failed tests', () => {
    const printed = [
      'test azure::a ... ok',
      'test azure::b ... FAILED',
      'test azure::c ... ignored, needs an account',
      '',
      '---- azure::b stdout ----',
      'panicked at src/b.rs',
    ].join('\n');
    expect(parseCargoTest(printed)).toEqual([
      { title: 'azure::a' },
      { title: 'azure::b', fault: expect.stringContaining('panicked at src/b.rs') },
      { title: 'azure::c', skipped: true },
    ]);
  });
});

describe('the report', () => {
  const result = {
    name: 'adlfs',
    version: '1',
    checks: {
      holdfast: [{ title: 'reads' }, { title: 'writes', fault: 'no' }, { title: 'lists', skipped: true }],
      azurite: [{ title: 'reads', fault: 'no' }],
    },
  };

  it('counts both servers side by side, and gives the reason of a skip', () => {
    const servers = [
      { kind: 'holdfast', title: 'Holdfast' },
      { kind: 'azurite', title: 'Azurite' },
    ];
    const table = formatTable([result, { name: 'go', unavailable: 'go is not installed', checks: {} }], servers);
    expect(table).toContain('| adlfs | 1 | 1 | 1 | 1 | 0 | 1 | 0 |');
    expect(table).toContain('| go | | skipped: go is not installed |');
  });

  it('knows a failure by its client, its title, and that a feature is missing', () => {
    const missing = 'Query Blob Contents is not implemented by this server yet';
    const known = [{ client: 'one', title: /^appends$/, reason: 'append blobs' }];
    const result = {
      name: 'one',
      checks: {
        holdfast: [
          { title: 'appends', fault: missing },
          { title: 'appends', fault: 'other bytes' },
          { title: 'writes', fault: missing },
        ],
        azurite: [{ title: 'reads', fault: 'no' }],
      },
    };
    expect(unknownFailures(result, known).map(({ title, fault }) => `${title}: ${fault}`)).toEqual([
      'appends: other bytes',
      `writes: ${missing}`,
    ]);
  });
});
