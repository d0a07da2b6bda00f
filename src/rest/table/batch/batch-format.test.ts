import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FALSE_BOUNDARIES_MAX, PART_HEADERS_MAX } from '../../../base/input-limits.ts';
import { runSliced } from '../../../base/time-slices.ts';
import { StorageError } from '../../../services/common/errors.ts';
import type { Request } from '../../operation.ts';
import { type Batch, partRequest, readBatch } from './batch-format.ts';

const TYPE = 'multipart/mixed; boundary=batch_1';
/** None of these bodies is long enough for more than one slice. */
const read = (text: string, type = TYPE) => runSliced(readBatch(Buffer.from(text), type), 0) as Batch;
const readSliced = async (text: string) => runSliced(readBatch(Buffer.from(text), TYPE), text.length);

function changesOf(text: string, type = TYPE) {
  const batch = read(text, type);
  if (batch.kind !== 'changes') throw new Error('a query');
  return batch.parts.map(({ method, url, headers, body }) => ({ method, url, headers, body: body.toString().trim() }));
}

const lines = (...all: string[]) => all.join('\r\n');
const INSERT = '{"PartitionKey":"p","RowKey":"r"}';

/** The form of .NET and Python: Content-ID in the headers of the part, absolute URLs. */
const outside = lines(
  '--batch_1',
  'Content-Type: multipart/mixed; boundary=changeset_1',
  '',
  '--changeset_1',
  'Content-Type: application/http',
  'Content-Transfer-Encoding: binary',
  'Content-ID: 0',
  '',
  'POST http://127.0.0.1:10002/devstoreaccount1/mine HTTP/1.1',
  'x-ms-version: 2019-02-02',
  'Prefer: return-no-content',
  'Content-Type: application/json;odata=nometadata',
  'Content-Length: 33',
  '',
  INSERT,
  '--changeset_1',
  'Content-Type: application/http',
  'Content-Transfer-Encoding: binary',
  'Content-ID: 1',
  '',
  "DELETE http://127.0.0.1:10002/devstoreaccount1/mine(PartitionKey='p',RowKey='s') HTTP/1.1",
  'If-Match: *',
  '',
  '',
  '--changeset_1--',
  '',
  '--batch_1--',
  '',
);

/** The form of older clients: Content-ID in the headers of the request, no host, an empty line after each body, none without a body. */
const inside = lines(
  '--batch_1',
  'Content-Type: multipart/mixed; boundary=changeset_1',
  '',
  '--changeset_1',
  'Content-Type: application/http',
  'Content-Transfer-Encoding: binary',
  '',
  'POST /mine HTTP/1.1',
  'Content-ID: 1',
  'Content-Type: application/json',
  '',
  INSERT,
  '',
  '--changeset_1',
  'Content-Type: application/http',
  'Content-Transfer-Encoding: binary',
  '',
  "DELETE /mine(PartitionKey='p',RowKey='s') HTTP/1.1",
  'Content-ID: 2',
  'If-Match: *',
  '',
  '--changeset_1--',
  '--batch_1--',
);

describe('The body of a batch', () => {
  it.each([
    ['with lines as HTTP has them', outside, TYPE],
    ['with plain line feeds', outside.replaceAll('\r\n', '\n'), TYPE],
    ['with a boundary in quotes', outside, 'multipart/mixed; charset=utf-8; boundary="batch_1"'],
    ['with quotes in the inner one', outside.replace('=changeset_1', '="changeset_1"'), TYPE],
    [
      'with a preamble and an epilogue',
      `hello\r\n--batch_12\r\n${outside}--batch_1\r\nbye`,
      'Multipart/Mixed;Boundary=batch_1',
    ],
    ['without a last line break', outside.trimEnd(), TYPE],
    ['with spaces after the boundaries', outside.replaceAll('set_1\r\n', 'set_1 \t\r\n'), TYPE],
    ['without types of the parts', outside.replaceAll(/Content-T\S+: (?:application\/http|binary)\r\n/g, ''), TYPE],
    ['with an extra line before each body, as the client for Node sends it', outside.replaceAll('{', '\r\n{'), TYPE],
    ['without a length', outside.replace(/Content-Length.*\r\n/, ''), TYPE],
    ['without a protocol', outside.replaceAll(' HTTP/1.1', ''), TYPE],
    [
      'with a boundary within a line',
      outside.replaceAll('x-ms-version: ', 'x-ms-note: --changeset_1\r\nx-ms-version: '),
      TYPE,
    ],
    ['with Content-IDs inside', inside, TYPE],
  ])('%s is read', (_, text, type) => {
    const [insert, remove, ...more] = changesOf(text, type);
    expect(more).toEqual([]);
    expect(insert).toMatchObject({ method: 'POST', body: INSERT });
    expect(insert!.headers['content-type']).toMatch(/^application\/json/);
    expect(remove).toMatchObject({ method: 'DELETE', body: '' });
    expect(remove!.headers['if-match']).toBe('*');
    expect(insert!.headers['content-id']).toBe(text === inside ? '1' : undefined);
  });

  it('can be a change set without changes', () => {
    const empty = '--batch_1\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c--\r\n--batch_1--';
    expect(changesOf(empty)).toEqual([]);
    // As Microsoft's Python SDK writes it.
    for (const part of ['--c\r\n--c--', '--c\r\n\r\n--c--'])
      expect(changesOf(empty.replace('--c--', part))).toEqual([]);
  });

  it('can be one query', () => {
    const query = lines('--batch_1', 'Content-Type: application/http', '', 'GET /mine() HTTP/1.1', '', '--batch_1--');
    expect(read(query)).toMatchObject({ kind: 'query', part: { method: 'GET', url: '/mine()' } });
  });

  it('is read no further than the first change too many', () => {
    const part = '--c\r\n\r\nDELETE /mine HTTP/1.1\r\n\r\n';
    const text = `--batch_1\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n${part.repeat(3_000)}--c--\r\n--batch_1--`;
    expect(changesOf(text)).toHaveLength(101);
  });

  it.each([
    ['without a type', outside, ''],
    ['of another type', outside, 'application/json'],
    ['without a boundary', outside, 'multipart/mixed'],
    ['of another boundary', outside, 'multipart/mixed; boundary=batch_2'],
    ['that is empty', '', TYPE],
    ['without its end', outside.replace('--batch_1--', ''), TYPE],
    ['without the end of its changes', outside.replace('--changeset_1--', ''), TYPE],
    ['with two sets of changes', outside.replace('\r\n--batch_1--', `\r\n${outside}`), TYPE],
    ['without a request', outside.replace(/POST.*\r\n/, ''), TYPE],
    ['with a header that is none', outside.replace('Prefer:', 'Prefer'), TYPE],
    ['with parts of another type', outside.replaceAll('application/http', 'text/plain'), TYPE],
    ['with no parts', '--batch_1--', TYPE],
  ])('%s is refused', (_, text, type) => {
    expect(() => read(text, type)).toThrow(expect.objectContaining({ status: 400, code: 'InvalidInput' }));
  });

  it('fails cleanly, whatever it is', () => {
    const cuts = fc.array(
      fc.tuple(fc.nat(outside.length), fc.nat(40), fc.constantFrom('', '\r\n', '--', '--batch_1', ':')),
    );
    fc.assert(
      fc.property(cuts, fc.constantFrom(outside, inside), (all, text) => {
        let changed = text;
        for (const [at, length, instead] of all) changed = changed.slice(0, at) + instead + changed.slice(at + length);
        try {
          const batch = read(changed);
          for (const part of batch.kind === 'query' ? [batch.part] : batch.parts) partRequest(part, outer());
        } catch (error) {
          expect(error).toBeInstanceOf(StorageError);
          expect((error as StorageError).status).toBe(400);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('has parts that are each read as if they were alone', () => {
    const part = fc
      .record({
        type: fc.constantFrom('', 'Content-Type: application/http\r\n', 'Content-ID: 1\r\n', 'Content-ID: 1\n'),
        start: fc.constantFrom('\r\n', '\n', '\r\n\r\n'),
        line: fc.constantFrom('POST /mine HTTP/1.1\r\n', 'DELETE /mine HTTP/1.1\n', 'POST /yours\r\n'),
        headers: fc.constantFrom('', 'a: b\r\n', 'a: b\r\nc: d\r\n', 'a: b\n', 'a: é\r\n'),
        end: fc.constantFrom('\r\n', '\n', ''),
        body: fc.constantFrom('', '{}', '{"é":1}', 'c: d\r\n\r\n{}', '\r\n'),
      })
      .map(({ type, start, line, headers, end, body }) => type + start + line + headers + end + body);
    const batchOf = (parts: readonly string[]) =>
      `--batch_1\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n${parts.map((text) => `--c\r\n${text}\r\n`).join('')}--c--\r\n--batch_1--`;
    const outcome = (parts: readonly string[]): unknown[] => {
      try {
        return changesOf(batchOf(parts));
      } catch (error) {
        return [(error as StorageError).code];
      }
    };
    fc.assert(
      fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
        const alone = parts.flatMap((one) => outcome([one]));
        expect(outcome(parts)).toEqual(alone.includes('InvalidInput') ? ['InvalidInput'] : alone);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['boundaries without end', '--batch_1\n'.repeat(400_000)],
    ['spaces after a boundary', `--batch_1${' '.repeat(4_000_000)}`],
    ['beginnings of boundaries', '--batch_'.repeat(500_000)],
    ['an endless line', `--batch_1\r\n\r\nGET ${' /'.repeat(2_000_000)}`],
    ['endless headers', `--batch_1\r\n${'a: b\r\n'.repeat(600_000)}\r\n--batch_1--`],
    ['empty lines', `--batch_1\r\n${'\r\n'.repeat(2_000_000)}--batch_1--`],
    ['dashes', '-'.repeat(4_000_000)],
  ])('of four million bytes costs no more than its bytes: %s', async (_, text) => {
    await expect(readSliced(text)).rejects.toThrow(StorageError);
  });

  it('is searched in short slices, whatever stands between two boundaries', () => {
    const sliceCount = (text: string) => {
      const steps = readBatch(Buffer.from(text), TYPE);
      let count = 1;
      for (; !steps.next().done; count++);
      return count;
    };
    const query = (filling: string) =>
      lines('--batch_1', 'Content-Type: application/http', '', 'GET /mine() HTTP/1.1', '', filling, '--batch_1--');
    expect(sliceCount(query(''))).toBe(1);
    for (const filling of ['-', '--batch_', `--batch_1${'-'.repeat(100_000)}`]) {
      const text = query(filling.repeat(4_000_000 / filling.length));
      expect(sliceCount(text)).toBeGreaterThanOrEqual(Math.floor(text.length / (128 << 10)));
    }
  });

  it('is read with boundaries where one slice of the search ends and the next begins', async () => {
    for (let at = (128 << 10) - 12; at <= (128 << 10) + 12; at++) {
      const preamble = `${'-'.repeat(at - 2)}\r\n`;
      expect(await readSliced(`${preamble}${outside}`)).toEqual(read(outside));
    }
  });

  it('has a bound on the headers of a part', () => {
    const batch = (headers: number) =>
      lines(
        '--batch_1',
        '',
        'GET /t HTTP/1.1',
        ...Array.from({ length: headers }, (_, at) => `h${at}: v`),
        '',
        '',
        '--batch_1--',
      );
    expect(read(batch(PART_HEADERS_MAX)).kind).toBe('query');
    expect(() => read(batch(PART_HEADERS_MAX + 1))).toThrow(StorageError);
  });

  it('has a bound on what looks like a boundary', () => {
    const batch = (times: number) =>
      lines('--batch_1', '', 'GET /t HTTP/1.1', '', '--batch_1 '.repeat(times), '--batch_1--');
    // The first of them begins a line, but more text follows on it.
    expect(read(batch(FALSE_BOUNDARIES_MAX)).kind).toBe('query');
    expect(() => read(batch(FALSE_BOUNDARIES_MAX + 1))).toThrow(StorageError);
  });
});

const outer = (base = '/devstoreaccount1'): Request => ({
  id: 'id',
  method: 'POST',
  rawPath: `${base}/$batch`,
  rawQuery: '',
  account: 'devstoreaccount1',
  secondary: false,
  base,
  secure: false,
  readsHosts: true,
  container: '',
  item: '',
  query: {},
  headers: { host: '127.0.0.1:10002', prefer: 'return-no-content', 'if-match': '*' },
  rawHeaders: [],
  version: '2019-02-02',
});

describe('A part of a batch', () => {
  it.each([
    ["http://127.0.0.1:10002/devstoreaccount1/mine(PartitionKey='p',RowKey='r')"],
    ["https://devstoreaccount1.table.core.windows.net/mine(PartitionKey='p',RowKey='r')"],
    ["/devstoreaccount1/mine(PartitionKey='p',RowKey='r')"],
    ["/mine(PartitionKey='p',RowKey='r')"],
    ["mine(PartitionKey='p',RowKey='r')"],
    ['/mine(PartitionKey=%27p%27,RowKey=%27r%27)'],
  ])('with the URL %s is the same, whatever the URL of the batch', (url) => {
    for (const base of ['/devstoreaccount1', '']) {
      const { item, ...request } = partRequest({ method: 'PUT', url, headers: {} }, outer(base));
      expect(request).toMatchObject({ container: 'mine', shape: '/{table}({keys})', method: 'PUT' });
      expect(item).toBe("PartitionKey='p',RowKey='r'");
    }
  });

  it('can be about a table with the name of the account', () => {
    const part = { method: 'POST', url: '/devstoreaccount1', headers: {} };
    expect(partRequest(part, outer())).toMatchObject({ container: 'devstoreaccount1', shape: '/{table}' });
  });

  it('has its own headers and query, and none of the batch', () => {
    const part = { method: 'GET', url: '/mine()?$top=3', headers: { accept: 'x' } };
    const { headers, query } = partRequest(part, outer());
    expect(headers).toEqual({ accept: 'x', host: '127.0.0.1:10002' });
    expect(query.$top).toBe('3');
  });
});
