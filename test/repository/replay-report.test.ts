import { describe, expect, it } from 'vitest';
import { findUnlisted, readRows } from '../../scripts/replay-report.mjs';

const page = `Some text | with a bar.

| operation | part | recorded | answered |
|---|---|---|---|
| blob PUT container | status | 201 | 409 PublicAccessNotPermitted |
| blob GET blob | header x-ms-meta-* | * | missing |

| operation | part | recorded | answered after that |
|---|---|---|---|
| blob GET blob | status | 20* | 404 * |

| another | table | with | four columns |
|---|---|---|---|
| blob HEAD blob | status | 200 | 404 |
`;

type Finding = { severity: string; field: string; how: string; recorded: string; got: string };
const status: Finding = {
  severity: 'severe',
  field: 'status',
  how: 'differs',
  recorded: '200',
  got: '404 BlobNotFound',
};

function unlistedIn(op: string, finding: Partial<Finding>, { after = false, got = {} } = {}) {
  const results = {
    cassettes: [{ cassette: 'one', results: [{ i: 3, op, after, got, findings: [{ ...status, ...finding }] }] }],
  };
  return [...findUnlisted(results, readRows(page)).found.keys()];
}

describe('the report on a replay', () => {
  it('accepts a difference that a row names', () => {
    expect(unlistedIn('blob PUT container', { recorded: '201', got: '409 PublicAccessNotPermitted' })).toEqual([]);
    expect(
      unlistedIn('blob GET blob', { field: 'header x-ms-meta-hello', how: 'missing', recorded: 'world', got: '' }),
    ).toEqual([]);
  });

  it('names a difference that no row does', () => {
    const line = 'blob PUT container | status | 201 | 500 InternalError';
    expect(unlistedIn('blob PUT container', { recorded: '201', got: '500 InternalError' })).toEqual([line]);
    expect(unlistedIn('blob HEAD blob', { got: '404' })).toHaveLength(1);
  });

  it('accepts a consequence only after an earlier difference of its scenario', () => {
    expect(unlistedIn('blob GET blob', {}, { after: true })).toEqual([]);
    expect(unlistedIn('blob GET blob', {})).toHaveLength(1);
  });

  it('leaves out what is minor, and operations that say themselves that they are not built', () => {
    expect(unlistedIn('blob GET blob', { severity: 'minor' })).toEqual([]);
    const got = {
      status: 501,
      body: 'Put Page is not implemented by this server yet; docs/operations.md lists what is.',
    };
    expect(unlistedIn('blob PUT blob comp=page update', { got: '501 NotImplemented' }, { got })).toEqual([]);
  });
});
