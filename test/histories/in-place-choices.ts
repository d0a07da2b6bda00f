/** Random requests to append and page blobs, for the load and for histories that are made up. */
import type { Cells, InPlaceRequest, InPlaceType } from './in-place-model.ts';
import { CELLS } from './in-place-model.ts';

/** What a client has heard: appends race for one position, and writes of pages for a sequence number. */
export interface Hints {
  /** No other request has it. */
  readonly name: string;
  readonly position?: number | undefined;
  readonly sequence?: number | undefined;
}

/** @param random from 0 to before 1, with each call another number */
export function inPlaceRequest(type: InPlaceType, random: () => number, hints: Hints): InPlaceRequest {
  const roll = random();
  if (type === 'append') {
    if (roll < 0.04) return { kind: 'seal' };
    return { kind: 'append', piece: hints.name, ...(roll < 0.3 && { position: hints.position }) };
  }
  const sequenceMax = random() < 0.3 ? hints.sequence : undefined;
  if (roll < 0.6) return { kind: 'write cells', cells: cellsBy(random), text: hints.name, sequenceMax };
  if (roll < 0.8) return { kind: 'clear cells', cells: cellsBy(random), sequenceMax };
  if (roll < 0.88) return { kind: 'set sequence', action: 'increment' };
  const number = (hints.sequence ?? 0) + Math.floor(random() * 3);
  return { kind: 'set sequence', action: roll < 0.94 ? 'max' : 'update', number };
}

function cellsBy(random: () => number): Cells {
  const from = Math.floor(random() * CELLS.length);
  return [from, Math.min(CELLS.length, from + 1 + Math.floor(random() * 2))];
}
