import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Blobs, blobsIn } from '../../test/support/content-blobs.ts';
import {
  apply,
  bytesOf,
  type Chosen,
  type Command,
  emptyModel,
  type ModelPiece,
  recount,
} from '../../test/support/content-model.ts';
import { bytesOfSeed, openStore } from '../../test/support/content-store.ts';
import { openMemoryExtents } from '../extents/memory.ts';

const BLOBS = ['a', 'b', 'c'];
const LABELS = ['1', '2', '3', '4'];

const aBlob = fc.constantFrom(...BLOBS);
const aLabel = fc.constantFrom(...LABELS);
/** How many bytes, and in how many chunks. */
const aBody = fc.record({ length: fc.integer({ min: 1, max: 300 }), chunks: fc.integer({ min: 1, max: 3 }) });
const aChoice: fc.Arbitrary<Chosen> = fc.oneof(
  fc.record({ staged: aLabel }),
  fc.record({ committed: fc.integer({ min: 0, max: 5 }) }),
);
type Step =
  | { kind: 'put'; blob: string; body: { length: number; chunks: number } }
  | { kind: 'stage'; label: string; body: { length: number; chunks: number } }
  | { kind: 'commit'; blob: string; chosen: Chosen[]; pending: boolean }
  | { kind: 'copy'; from: string; to: string }
  | { kind: 'delete'; blob: string }
  | { kind: 'fail'; body: { length: number; chunks: number } }
  | { kind: 'abandon'; chosen: Chosen[]; blob: string }
  | { kind: 'sweep' }
  | { kind: 'read'; blob: string; from: number; to: number };

const aStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('put' as const), blob: aBlob, body: aBody }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('stage' as const), label: aLabel, body: aBody }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('commit' as const),
      blob: aBlob,
      chosen: fc.array(aChoice, { maxLength: 6 }),
      pending: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('copy' as const), from: aBlob, to: aBlob }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete' as const), blob: aBlob }) },
  fc.record({ kind: fc.constant('fail' as const), body: aBody }),
  fc.record({ kind: fc.constant('abandon' as const), blob: aBlob, chosen: fc.array(aChoice, { maxLength: 6 }) }),
  { weight: 3, arbitrary: fc.constant({ kind: 'sweep' as const }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('read' as const),
      blob: aBlob,
      from: fc.integer({ min: 0, max: 1500 }),
      to: fc.integer({ min: 1, max: 1500 }),
    }),
  },
);

/** The step in the model; undefined if the model does not see it. */
function commandFor(step: Step, piece: ModelPiece): Command | undefined {
  if (step.kind === 'put') return { kind: 'put', blob: step.blob, piece };
  if (step.kind === 'stage') return { kind: 'stage', label: step.label, piece };
  if (step.kind === 'commit' || step.kind === 'copy' || step.kind === 'delete') return step;
  return undefined;
}

async function perform(at: Blobs, step: Step, piece: ModelPiece): Promise<void> {
  if (step.kind === 'put') await at.put(step.blob, piece, step.body.chunks);
  else if (step.kind === 'stage') await at.stage(step.label, piece, step.body.chunks);
  else if (step.kind === 'commit') await at[step.pending ? 'commitPending' : 'commit'](step.blob, step.chosen);
  else if (step.kind === 'copy') await at.copy(step.from, step.to);
  else if (step.kind === 'delete') await at.drop(step.blob);
  else if (step.kind === 'fail') (await at.takePiece(piece, step.body.chunks)).release();
  else if (step.kind === 'abandon') await at.giveUp(step.blob, step.chosen);
  else if (step.kind === 'sweep') await at.sweep();
  else await at.read(step.blob, step.from, step.to);
}

function pieceFor(step: Step, i: number): ModelPiece {
  return { label: `p${i}`, bytes: 'body' in step ? bytesOfSeed(i, step.body.length) : Buffer.alloc(0) };
}

async function openService() {
  const opened = await openStore((epoch) => openMemoryExtents({ epoch, extentBytesMax: 1500 }));
  return { opened, at: blobsIn(opened) };
}

/** Whatever happened: once everything is deleted and swept, nothing is left. */
async function removeAll({ opened, at }: Awaited<ReturnType<typeof openService>>): Promise<void> {
  for (const blob of BLOBS) await at.drop(blob);
  await at.stage('1', { label: 'last', bytes: Buffer.from('last') }, 1);
  await at.commit('a', [{ staged: '1' }]);
  await at.drop('a');
  while (await at.sweep());
  const nothing = { heads: [], trashed: [], blocks: [], cells: [], contents: [], chunks: [], live: {} };
  expect(await at.stored()).toEqual(nothing);
  expect(opened.store.pinnedExtents()).toEqual(new Set());
  expect(opened.reads.oldest()).toBe(Infinity);
}

describe('Contents', () => {
  it('hold what plain bytes would, and every count is exact after every step', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(aStep, { maxLength: 25 }), async (steps) => {
        const world = await openService();
        const { at } = world;
        const model = emptyModel();
        for (const [i, step] of steps.entries()) {
          const piece = pieceFor(step, i);
          const command = commandFor(step, piece);
          if (command) apply(model, command);
          if (step.kind === 'read') {
            const pieces = model.blobs.get(step.blob);
            const expected = pieces && bytesOf(pieces).subarray(step.from, Math.max(step.from, step.to));
            expect(await at.read(step.blob, step.from, step.to)).toEqual(expected);
          } else await perform(at, step, piece);
          expect(recount(await at.stored())).toEqual([]);
        }
        for (const blob of BLOBS) {
          const pieces = model.blobs.get(blob);
          expect(await at.read(blob, 0, 10_000)).toEqual(pieces && bytesOf(pieces));
        }
        await removeAll(world);
      }),
      { numRuns: 300 },
    );
  }, 60_000);

  it('have exact counts also when everything happens at once', async () => {
    const quick = aStep.filter((step) => !(step.kind === 'commit' && step.pending) && step.kind !== 'abandon');
    await fc.assert(
      fc.asyncProperty(fc.array(quick, { maxLength: 25 }), async (steps) => {
        const world = await openService();
        const { at } = world;
        await Promise.all(steps.map((step, i) => perform(at, step, pieceFor(step, i))));
        expect(recount(await at.stored())).toEqual([]);
        await removeAll(world);
      }),
      { numRuns: 200 },
    );
  }, 60_000);
});
