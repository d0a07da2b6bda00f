/** Conformance: read checks, range checks, timestamps and deadline of a commit. */
import { describe, expect, it } from 'vitest';
import { keysUnder } from '../keys.ts';
import type { Commit, Engine, Timestamp, Write } from '../partition.ts';
import { bytes, type Harness, key, makeCommit, openStore, readEngine, rowText } from './harness.ts';

const ROW = key('row', 1);
const RESULT = key('result');

function putSet(timestamp: Timestamp, ...keys: (typeof ROW)[]): Commit['writeSets'][number] {
  return { timestamp, writes: keys.map((each): Write => ({ kind: 'put', key: each, value: bytes('written') })) };
}

/** An engine whose row 1 has the returned version, and another engine for concurrent commits. */
async function start(harness: Harness): Promise<{ engine: Engine; other: Engine; version: Timestamp }> {
  const store = await openStore(harness);
  const { engine } = store;
  const version = engine.clock.nextTimestamp();
  expect(await engine.commit(makeCommit({ writeSets: [putSet(version, ROW)] }))).toBe('committed');
  return { engine, other: await store.beside(), version };
}

async function attempt(engine: Engine, parts: Partial<Commit>): Promise<[string, string | undefined]> {
  const outcome = await engine.commit(
    makeCommit({ writeSets: [putSet(engine.clock.nextTimestamp(), RESULT)], ...parts }),
  );
  return [outcome, rowText(await readEngine(engine, (at) => at.get(RESULT)))];
}

const COMMITTED = ['committed', 'written'];
const CONFLICT = ['conflict', undefined];

export function checks(harness: Harness): void {
  describe('a commit', () => {
    it('validates a version check', async () => {
      const { engine, other, version } = await start(harness);
      expect(await attempt(engine, { checks: [{ key: ROW, version: version - 1n }] })).toEqual(CONFLICT);
      await other.commit(makeCommit({ writeSets: [putSet(later(other, version), ROW)] }));
      expect(await attempt(engine, { checks: [{ key: ROW, version }] })).toEqual(CONFLICT);
      const row = await readEngine(engine, (at) => at.get(ROW));
      expect(await attempt(engine, { checks: [{ key: ROW, version: row!.version }] })).toEqual(COMMITTED);
    });

    it('validates a check for absence', async () => {
      const { engine, other } = await start(harness);
      expect(await attempt(engine, { checks: [{ key: ROW }] })).toEqual(CONFLICT);
      await other.commit(makeCommit({ writeSets: [putSet(other.clock.nextTimestamp(), key('row', 2))] }));
      expect(await attempt(engine, { checks: [{ key: key('row', 2) }] })).toEqual(CONFLICT);
      expect(await attempt(engine, { checks: [{ key: key('row', 3) }] })).toEqual(COMMITTED);
    });

    it('conflicts in a version check of a removed row', async () => {
      const { engine, other, version } = await start(harness);
      const timestamp = later(other, version);
      await other.commit(makeCommit({ writeSets: [{ timestamp, writes: [{ kind: 'remove', key: ROW }] }] }));
      expect(await attempt(engine, { checks: [{ key: ROW, version }] })).toEqual(CONFLICT);
      expect(await attempt(engine, { checks: [{ key: ROW }] })).toEqual(COMMITTED);
    });

    it('validates a range check: exactly these rows in exactly these versions', async () => {
      const { engine, other, version } = await start(harness);
      const range = keysUnder(['row']);
      const second = other.clock.nextTimestamp();
      await other.commit(makeCommit({ writeSets: [putSet(second, key('row', 2))] }));
      const one = { key: ROW, version };
      const two = { key: key('row', 2), version: second };
      const wrong = [[], [one], [two], [one, { ...two, version: second + 1n }], [one, { ...two, key: key('row', 3) }]];
      for (const rows of [...wrong, [one, two, { key: key('row', 3), version }]]) {
        expect(await attempt(engine, { ranges: [{ range, rows }] })).toEqual(CONFLICT);
      }
      expect(await attempt(engine, { ranges: [{ range, rows: [one, two] }] })).toEqual(COMMITTED);
    });

    it('validates a range check of an empty range (phantoms)', async () => {
      const { engine, other } = await start(harness);
      const range = keysUnder(['elsewhere']);
      expect(await attempt(engine, { ranges: [{ range, rows: [] }] })).toEqual(COMMITTED);
      await other.commit(makeCommit({ writeSets: [putSet(other.clock.nextTimestamp(), key('elsewhere', 1))] }));
      const timestamp = engine.clock.nextTimestamp();
      const refused = makeCommit({
        ranges: [{ range, rows: [] }],
        writeSets: [putSet(timestamp, key('elsewhere', 2))],
      });
      expect(await engine.commit(refused)).toBe('conflict');
      expect(await readEngine(engine, (at) => at.get(key('elsewhere', 2)))).toBeUndefined();
    });

    it('writes nothing of any write set when one check fails', async () => {
      const { engine, version } = await start(harness);
      const writeSets = [putSet(later(engine, version), ROW), putSet(engine.clock.nextTimestamp(), RESULT)];
      const checks = [
        { key: ROW, version },
        { key: key('row', 2), version },
      ];
      expect(await attempt(engine, { writeSets: writeSets, checks })).toEqual(CONFLICT);
      expect((await readEngine(engine, (at) => at.get(ROW)))?.version).toBe(version);
    });

    it('conflicts if a timestamp is not above the version it replaces', async () => {
      const { engine, version } = await start(harness);
      for (const timestamp of [version - 1n, version]) {
        expect(await attempt(engine, { writeSets: [putSet(timestamp, RESULT, ROW)] })).toEqual(CONFLICT);
        const removal: Write = { kind: 'remove', key: ROW };
        expect(await attempt(engine, { writeSets: [{ timestamp, writes: [removal] }] })).toEqual(CONFLICT);
      }
      expect((await readEngine(engine, (at) => at.get(ROW)))?.version).toBe(version);
      expect(await attempt(engine, { writeSets: [putSet(later(engine, version), RESULT, ROW)] })).toEqual(COMMITTED);
    });

    it('applies its write sets in order, each with its timestamp', async () => {
      const { engine, version } = await start(harness);
      const [first, second] = [later(engine, version), engine.clock.nextTimestamp()];
      const writeSets = [
        putSet(first, ROW, RESULT),
        { timestamp: second, writes: [{ kind: 'remove' as const, key: ROW }] },
      ];
      expect(await attempt(engine, { writeSets: writeSets })).toEqual(COMMITTED);
      expect(await readEngine(engine, (at) => at.get(ROW))).toBeUndefined();
      expect((await readEngine(engine, (at) => at.get(RESULT)))?.version).toBe(first);
    });

    it('conflicts after its deadline', async () => {
      const { engine } = await start(harness);
      const deadline = engine.clock.now() + 600_000_000n;
      await engine.clock.advance(700_000_000n);
      expect(await attempt(engine, { deadline })).toEqual(CONFLICT);
      expect(await attempt(engine, { deadline: engine.clock.now() + 600_000_000n })).toEqual(COMMITTED);
    });

    it('writes a thousand rows at once', async () => {
      const { engine } = await start(harness);
      const keys = Array.from({ length: 1000 }, (_, i) => key('many', i));
      await attempt(engine, { writeSets: [putSet(engine.clock.nextTimestamp(), ...keys)] });
      const rows = await readEngine(engine, (at) => at.getMany(keys));
      expect(rows.filter((row) => rowText(row) === 'written')).toHaveLength(1000);
    });
  });
}

/** A timestamp above this version, also from an engine whose clock is behind. */
function later(engine: Engine, version: Timestamp): Timestamp {
  const timestamp = engine.clock.nextTimestamp();
  return timestamp > version ? timestamp : version + 1n;
}
