/** The text of a page of entities. Each is written as it is found, so that no stretch of work is longer than one slice of the query. */
import type { StoredEntity } from '../../services/table/entity-rows.ts';
import type { EntitySink } from '../../services/table/queries.ts';
import { type Answer, writeEntity, writeStart } from './json/entity-text.ts';
import { copy, type Output, write } from './json/output.ts';

const FIRST_BYTES = 2 << 10;
/** Few and large, since an answer of many small pieces is slower than one copy. */
const PIECE_BYTES = 64 << 10;
const PIECE_ROOM_BYTES = PIECE_BYTES + (8 << 10);

const OPENING = Buffer.from('{');
const NEXT = Buffer.from(',{');

export class EntityPage implements EntitySink {
  private readonly answer: Answer;
  private readonly pieces: Buffer[] = [];
  private output: Output = { bytes: Buffer.allocUnsafe(FIRST_BYTES), at: 0 };
  private isEmpty = true;

  constructor(answer: Answer) {
    this.answer = answer;
    writeStart(this.output, answer);
  }

  add(entity: StoredEntity, bytesMax: number): number | undefined {
    const { output } = this;
    const start = output.at;
    copy(output, this.isEmpty ? OPENING : NEXT);
    writeEntity(output, entity, this.answer);
    const grown = output.at - start;
    if (grown > bytesMax) {
      output.at = start;
      return undefined;
    }
    this.isEmpty = false;
    if (output.at >= PIECE_BYTES) this.endPiece();
    return grown;
  }

  /** All of it; nothing can be added any more. */
  end(): readonly Buffer[] {
    write(this.output, ']}');
    this.endPiece();
    return this.pieces;
  }

  private endPiece(): void {
    const { bytes, at } = this.output;
    this.pieces.push(bytes.subarray(0, at));
    this.output = { bytes: Buffer.allocUnsafe(PIECE_ROOM_BYTES), at: 0 };
  }
}
