/** Every row of the condition tables, asked of a server over HTTP. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  call,
  createBlob,
  createContainer,
  createSource,
  leaseIds,
  look,
  movingServer,
  type Said,
  type StillServer,
  stillServer,
  type Target,
  takeStep,
} from '../support/frozen-clock-server.ts';
import { onEngine } from '../support/test-server.ts';
import {
  type Asked,
  type ConditionCell,
  containerCells,
  type DateWord,
  type ETag,
  leaseLiftCells,
  operations,
  readCells,
  readTruthCells,
  unliftedOperations,
  writeCells,
} from '../truth-tables/conditions.ts';
import { situations } from '../truth-tables/lease-actions.ts';

const HOME = '/home-of-blobs';
const OTHER_ETAGS = ['"0x8D0000000000001"', '"0x8D0000000000002"'];

conditionTables(stillServer());
onEngine('PostgreSQL', (running) => conditionTables(movingServer(running)), { heavy: true });

function conditionTables(server: StillServer): void {
  let made = 0;
  /** Values for a blob that does not exist. */
  let neighbour: Said;

  beforeAll(async () => {
    await createContainer(server, HOME);
    await createSource(server);
    neighbour = await look(server, await createBlob(server, `${HOME}/neighbour`));
  });

  async function newTarget({ operation, exists }: ConditionCell): Promise<Target> {
    made += 1;
    if (operation.resource === 'container') return createContainer(server, `/container-${made}`);
    const path = `${HOME}/${made}`;
    return exists ? createBlob(server, path, operation.type) : { resource: 'blob', path };
  }

  function headersOf(asked: Asked, { headers }: Said): Record<string, string | undefined> {
    const etags = (words: '*' | readonly ETag[] | undefined) =>
      typeof words === 'string' || words === undefined
        ? words
        : words.map((word, at) => (word === 'current' ? headers.etag! : OTHER_ETAGS[at]!)).join(', ');
    const date = (word: DateWord | undefined) => word && dateOf(word, headers['last-modified']!);
    return {
      'If-Match': etags(asked.ifMatch),
      'If-None-Match': etags(asked.ifNoneMatch),
      'If-Modified-Since': date(asked.ifModifiedSince),
      'If-Unmodified-Since': date(asked.ifUnmodifiedSince),
    };
  }

  /** Dates are whole seconds, so the next one to either side is the nearest that differs. */
  function dateOf(word: DateWord, lastModified: string): string {
    const seconds = { earlier: -1, same: 0, later: 1 }[word];
    return new Date(Date.parse(lastModified) + seconds * 1000).toUTCString();
  }

  /** State that a refused request must not change. */
  function seen({ status, headers }: Said) {
    return {
      status,
      etag: headers.etag,
      lastModified: headers['last-modified'],
      written: headers['x-ms-meta-written'],
      type: headers['content-type'],
      lease: headers['x-ms-lease-state'],
    };
  }

  async function check(cell: ConditionCell): Promise<void> {
    const { operation, exists, asked, verdict, status, code } = cell;
    const target = await newTarget(cell);
    const before = await look(server, target);
    // Dates are compared with Last-Modified, not with the present.
    await server.wait(10);
    const answer = await call(server, operation.name, target, headersOf(asked, exists ? before : neighbour));
    expect({ status: answer.status, code: answer.code }).toEqual({ status, code });
    const after = await look(server, target);
    if (verdict !== 'proceed' || operation.kind === 'read') expect(seen(after)).toEqual(seen(before));
    else expectDone(operation.name, before, after);
    if (verdict === 'NotModified') {
      expect(answer.text).toBe('');
      expect(answer.headers.etag).toBeUndefined();
      expect(answer.headers['last-modified']).toBeUndefined();
    }
  }

  function expectDone(operation: string, before: Said, after: Said): void {
    expect(after.status).toBe(operation.startsWith('Delete ') ? 404 : 200);
    if (operation.startsWith('Lease ')) {
      expect(seen(after)).toEqual({ ...seen(before), lease: 'leased' });
    } else {
      expect(after.headers.etag).not.toBe(before.headers.etag);
    }
  }

  const isOfGetBlob = ({ operation }: ConditionCell) => operation.name === 'Get Blob';

  /** No row of the tables: it behaves as Get Blob. */
  function ofGetBlobMetadata(cell: ConditionCell): ConditionCell {
    const name = 'Get Blob Metadata';
    return { ...cell, title: cell.title.replace('Get Blob', name), operation: { ...cell.operation, name } };
  }

  describe('Conditions', () => {
    const reads = [...readTruthCells, ...readCells];
    const cells = [...reads, ...reads.filter(isOfGetBlob).map(ofGetBlobMetadata), ...writeCells, ...containerCells];

    it('are asked for every row and every operation', () => {
      expect(readTruthCells).toHaveLength(3 * 81);
      expect(readCells).toHaveLength(3 * 28);
      expect(writeCells).toHaveLength(15 * 68);
      expect(containerCells).toHaveLength(40);
      expect(cells).toHaveLength(4 * (81 + 28) + 15 * 68 + 40);
      expect(new Set(cells.map(({ operation }) => operation.name)).size).toBe(operations.length + 1);
    });

    for (const cell of cells) it(`${cell.title}: ${cell.verdict}`, () => check(cell));
  });

  describe('If-None-Match:* with the id of the active lease', () => {
    it('is asked for every write that makes nothing', () => expect(unliftedOperations).toHaveLength(12));

    for (const { name, type } of unliftedOperations) {
      it(`is not met by ${name}`, async () => {
        made += 1;
        const target = await createBlob(server, `${HOME}/${made}`, type);
        for (const step of situations.leased.steps) await takeStep(server, target, step);
        const before = await look(server, target);
        const answer = await call(server, name, target, { 'If-None-Match': '*', 'x-ms-lease-id': leaseIds.A });
        expect({ status: answer.status, code: answer.code }).toEqual({ status: 412, code: 'ConditionNotMet' });
        expect(seen(await look(server, target))).toEqual(seen(before));
      });
    }
  });

  describe('Put Blob with If-None-Match:* on a leased blob', () => {
    it('is asked for every row', () => expect(leaseLiftCells).toHaveLength(7));

    for (const cell of leaseLiftCells) {
      const code = 'code' in cell ? cell.code : undefined;
      it(`with ${cell.title}: ${code ?? 'proceeds'}`, async () => {
        made += 1;
        const target = await createBlob(server, `${HOME}/${made}`);
        for (const step of situations[cell.state].steps) await takeStep(server, target, step);
        const before = await look(server, target);
        const answer = await call(server, 'Put Blob', target, {
          'If-None-Match': '*',
          'x-ms-lease-id': 'leaseId' in cell ? leaseIds[cell.leaseId] : undefined,
        });
        expect({ status: answer.status, code: answer.code }).toEqual({ status: cell.status, code });
        const after = await look(server, target);
        if (code === undefined) expect(after.headers.etag).not.toBe(before.headers.etag);
        else expect(seen(after)).toEqual(seen(before));
        expect(after.headers['x-ms-lease-state']).toBe(cell.state);
      });
    }
  });
}
