import { type Edm, odata, type TableClient, type TransactionAction } from '@azure/data-tables';
import { beforeAll, describe, expect, it } from 'vitest';
import { all, ask, expectOdataError, expectRefused, newName, newTable, rowKeysOf } from '../support/tables.ts';
import { onEveryEngine, onLmdb } from '../support/test-server.ts';

describe('Query Entities', () => {
  onEveryEngine((running) => {
    describe('filters', () => {
      let table: TableClient;
      const int64 = (value: string) => ({ type: 'Int64', value }) as Edm<'Int64'>;
      const guid = (value: string) => ({ type: 'Guid', value }) as Edm<'Guid'>;
      beforeAll(async () => {
        table = await newTable(running);
        const entities = [
          {
            rowKey: '1',
            text: 'apple',
            count: 5,
            large: int64('1099511627776'),
            ratio: 1.5,
            isOld: true,
            day: new Date('2008-07-10T00:00:00Z'),
            id: guid('c9da6455-213d-42c9-9a79-3e9149a57833'),
            bytes: Buffer.from('binary'),
          },
          {
            rowKey: '2',
            text: "O'Neil",
            count: -3,
            large: int64('-1'),
            ratio: -0.25,
            isOld: false,
            day: new Date('2009-01-01T12:30:00.123Z'),
            id: guid('00000000-0000-0000-0000-000000000001'),
            bytes: Buffer.from([255]),
          },
          { rowKey: '3', text: 'Zebra', other: 1 },
        ];
        for (const entity of entities) await table.createEntity({ partitionKey: 'p', ...entity });
        await table.createEntity({ partitionKey: 'q', rowKey: '1', text: 'apple' });
      });

      it.each([
        ["text eq 'apple'", ['1', '1']],
        ["text eq 'O''Neil'", ['2']],
        ["text gt 'Zebra'", ['1', '1']],
        ["text ge 'O' and text lt 'P'", ['2']],
        ["text ne 'apple'", ['2', '3']],
        ["'apple' eq text", ['1', '1']],
        ['5 gt count', ['2']],
        ['count eq 5', ['1']],
        ['count le 5 and count gt -3', ['1']],
        ['large eq 1099511627776L', ['1']],
        ['large lt 0L', ['2']],
        ['ratio eq 1.5', ['1']],
        ['ratio lt 0.0', ['2']],
        ['isOld eq true', ['1']],
        ['isOld eq false', ['2']],
        ['not (isOld eq true) and count lt 100', ['2']],
        ["day gt datetime'2008-12-31T00:00:00Z'", ['2']],
        ["day eq datetime'2008-07-10T00:00:00Z'", ['1']],
        ["id eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'", ['1']],
        ["bytes eq X'62696e617279'", ['1']],
        ["bytes eq binary'ff'", ['2']],
        ["PartitionKey eq 'q'", ['1']],
        ["PartitionKey eq 'p' and RowKey ge '2'", ['2', '3']],
        ["(RowKey eq '1' or RowKey eq '3') and PartitionKey eq 'p'", ['1', '3']],
        ["RowKey eq '1'", ['1', '1']],
        ["Timestamp ge datetime'2001-01-01T00:00:00Z'", ['1', '2', '3', '1']],
        ["count eq 'text'", []],
        ['missing ne 1', []],
        ["PartitionKey gt 'z'", []],
      ])('by %s', async (filter, rowKeys) => {
        expect(await rowKeysOf(table, filter)).toEqual(rowKeys);
      });

      it('by what the client makes of values', async () => {
        expect(await rowKeysOf(table, odata`text eq ${"O'Neil"}`)).toEqual(['2']);
        expect(await rowKeysOf(table, odata`day eq ${new Date('2009-01-01T12:30:00.123Z')}`)).toEqual(['2']);
        expect(await rowKeysOf(table, odata`count eq ${5} and isOld eq ${true}`)).toEqual(['1']);
      });

      it.each([
        'count eq',
        'count = 5',
        "text eq 'open",
        'count eq 5 and',
        '(count eq 5',
        'count eq other',
        'count EQ 5',
        Array.from({ length: 16 }, () => 'a eq 1').join(' or '),
      ])('but not by %s', async (filter) => {
        await expectRefused(rowKeysOf(table, filter), 400, 'InvalidInput');
      });
    });

    describe('pages', () => {
      it('hold as many as were asked for, and tell where to go on', async () => {
        const table = await newTable(running);
        for (let at = 0; at < 5; at++) await table.createEntity({ partitionKey: 'p', rowKey: `r${at}`, at });
        const pages: string[][] = [];
        const tokens: (string | undefined)[] = [];
        for await (const page of table.listEntities().byPage({ maxPageSize: 2 })) {
          pages.push(page.map(({ rowKey }) => rowKey!));
          tokens.push(page.continuationToken);
        }
        expect(pages).toEqual([['r0', 'r1'], ['r2', 'r3'], ['r4']]);
        expect(tokens.at(-1)).toBeUndefined();
        const [second] = await all(table.listEntities().byPage({ maxPageSize: 2, continuationToken: tokens[0]! }));
        expect(second!.map(({ rowKey }) => rowKey)).toEqual(['r2', 'r3']);
        const answer = await ask(running, 'GET', `/${table.tableName}()?$top=2`);
        expect(answer.headers).toMatchObject({
          'x-ms-continuation-nextpartitionkey': '1!4!cA--',
          'x-ms-continuation-nextrowkey': '1!4!cjI-',
        });
        // A continuation may have a partition key only.
        const next = await ask(running, 'GET', `/${table.tableName}()?NextPartitionKey=1!4!cA--`);
        expect(JSON.parse(next.text).value).toHaveLength(5);
        const past = await ask(running, 'GET', `/${table.tableName}()?NextPartitionKey=1!4!cQ--&NextRowKey=`);
        expect(JSON.parse(past.text).value).toEqual([]);
      });

      it('are empty and the last ones if none is asked for', async () => {
        const table = await newTable(running);
        await table.createEntity({ partitionKey: 'p', rowKey: 'r' });
        const answer = await ask(running, 'GET', `/${table.tableName}()?$top=0`);
        expect([answer.status, JSON.parse(answer.text).value]).toEqual([200, []]);
        expect(Object.keys(answer.headers).filter((name) => name.includes('continuation'))).toEqual([]);
        expect((await ask(running, 'GET', '/Tables?$top=0')).text).toContain('"value":[]');
        expectOdataError(await ask(running, 'GET', `/${newName()}()?$top=0`), 404, 'TableNotFound');
      });

      it('stay within 4 MiB, whatever is selected, and continue after that', async () => {
        const table = await newTable(running);
        const actions = Array.from(
          { length: 200 },
          (_, at): TransactionAction => ['create', { partitionKey: 'p', rowKey: String(at + 100) }],
        );
        for (const from of [0, 100]) await table.submitTransaction(actions.slice(from, from + 100));
        const select = Array.from({ length: 120 }, (_, at) => `${'n'.repeat(240)}${at + 100}`);
        const found: string[] = [];
        let from = '';
        for (let pages = 0; pages < 2; pages++) {
          const names = [...select, 'RowKey'].join(',');
          const answer = await ask(running, 'GET', `/${table.tableName}()?$select=${names}${from}`);
          expect(answer.bytes.length).toBeLessThan((4 << 20) + 40_000);
          const { value } = JSON.parse(answer.text) as { value: Record<string, string>[] };
          found.push(...value.map(({ RowKey }) => RowKey!));
          const { 'x-ms-continuation-nextpartitionkey': partition, 'x-ms-continuation-nextrowkey': row } =
            answer.headers;
          if (partition === undefined) break;
          from = `&NextPartitionKey=${partition}&NextRowKey=${row}`;
        }
        expect(found).toEqual(actions.map(([, { rowKey }]) => rowKey));
      });

      it('show what was selected only', async () => {
        const table = await newTable(running);
        await table.createEntity({ partitionKey: 'p', rowKey: 'r', a: 1, b: 2 });
        const select = async (query: string) => {
          const answer = await ask(running, 'GET', `/${table.tableName}()?${query}`);
          return JSON.parse(answer.text);
        };
        const some = await select('$select=a,RowKey');
        expect(some['odata.metadata']).toBe(`${running.server.tableUrl}/$metadata#${table.tableName}&$select=a,RowKey`);
        expect(some.value).toEqual([{ 'odata.etag': expect.any(String), RowKey: 'r', a: 1 }]);
        const [listed] = await all(
          table.listEntities<{ a: number }>({ queryOptions: { select: ['a', 'partitionKey'] } }),
        );
        expect(listed).toMatchObject({ a: 1 });
        expect((await select('')).value[0]).toMatchObject({ PartitionKey: 'p', RowKey: 'r', a: 1, b: 2 });
      });

      it.each([
        [`$select=${'a,'.repeat(255)}a`, 400, 'InvalidInput'],
        ['$top=1001', 400, 'InvalidInput'],
        ['$top=-1', 400, 'InvalidInput'],
        ['$top=x', 400, 'InvalidInput'],
        ['NextPartitionKey=abc', 400, 'InvalidInput'],
        ['NextPartitionKey=1!5!cA--', 400, 'InvalidInput'],
        ['NextRowKey=1!4!cA--', 400, 'InvalidInput'],
        ['$orderby=a', 501, 'NotImplemented'],
        ['$skip=1', 501, 'NotImplemented'],
        ['$inlinecount=allpages', 501, 'NotImplemented'],
        ['$expand=a', 501, 'NotImplemented'],
        ['$count=true', 501, 'NotImplemented'],
        ['$format=atom', 415, 'AtomFormatNotSupported'],
        ['$filter=%', 400, 'InvalidQueryParameterValue'],
      ])('are refused with %s', async (query, status, code) => {
        const { tableName } = await newTable(running);
        expectOdataError(await ask(running, 'GET', `/${tableName}()?${query}`), status, code);
      });

      it('say by 501 that there are no functions', async () => {
        const { tableName } = await newTable(running);
        for (const filter of ["startswith(s,'i')", "not substringof('a',text)", 'length(text) eq 1']) {
          const answer = await ask(running, 'GET', `/${tableName}()?$filter=${encodeURIComponent(filter)}`);
          expectOdataError(answer, 501, 'NotImplemented');
        }
      });

      it('are refused of tables that are not there', async () => {
        await expectRefused(rowKeysOf(running.table(newName())), 404, 'TableNotFound');
      });
    });
  });
});

describe('Ten thousand entities', () => {
  onLmdb((running) => {
    it('come in pages of a thousand, in order, each once', async () => {
      const table = await newTable(running);
      const keyOf = (at: number) => String(at).padStart(5, '0');
      for (let partition = 0; partition < 10; partition++) {
        for (let start = 0; start < 1_000; start += 100) {
          const actions = Array.from({ length: 100 }, (_, at): TransactionAction => {
            return ['create', { partitionKey: `p${partition}`, rowKey: keyOf(start + at), at: start + at }];
          });
          await table.submitTransaction(actions);
        }
      }
      const sizes: number[] = [];
      const keys: string[] = [];
      for await (const page of table.listEntities().byPage()) {
        sizes.push(page.length);
        for (const { partitionKey, rowKey } of page) keys.push(`${partitionKey}/${rowKey}`);
      }
      expect(sizes).toEqual(Array.from({ length: 10 }, () => 1_000));
      expect(new Set(keys).size).toBe(10_000);
      expect(keys).toEqual(keys.toSorted());
      const filter = odata`PartitionKey eq 'p4' and RowKey ge '00500' and at lt ${510}`;
      expect(await rowKeysOf(table, filter)).toEqual(Array.from({ length: 10 }, (_, at) => keyOf(500 + at)));
    }, 60_000);
  });
});
