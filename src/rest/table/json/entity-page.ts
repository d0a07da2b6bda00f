/** The JSON of a page of entities. Each entity is written when it is found, within the slices of the query. */
import type { StoredEntity } from '../../../services/table/entity-rows.ts';
import type { EntitySink } from '../../../services/table/queries.ts';
import { appendBytes, appendText, type GrowingBuffer } from './growing-buffer.ts';
import { type AnswerFormat, writeEntity, writePageStart } from './write-entity.ts';

const FIRST_BYTES = 2 << 10;
/** Few and large pieces: to send many small ones is slower than to copy them. */
const PIECE_BYTES = 64 << 10;
const PIECE_ROOM_BYTES = PIECE_BYTES + (8 << 10);

const OPENING = Buffer.from('{');
const NEXT = Buffer.from(',{');

export class EntityPage implements EntitySink {
  private readonly answer: AnswerFormat;
  private readonly pieces: Buffer[] = [];
  private output: GrowingBuffer = { bytes: Buffer.allocUnsafe(FIRST_BYTES), at: 0 };
  private isEmpty = true;

  constructor(answer: AnswerFormat) {
    this.answer = answer;
    writePageStart(this.output, answer);
  }

  add(entity: StoredEntity, bytesMax: number): number | undefined {
    const { output } = this;
    const start = output.at;
    appendBytes(output, this.isEmpty ? OPENING : NEXT);
    writeEntity(output, entity, this.answer);
    const grown = output.at - start;
    if (grown > bytesMax) {
      output.at = start;
      return undefined;
    }
    this.isEmpty = false;
    if (output.at >= PIECE_BYTES) this.flush();
    return grown;
  }

  /** Returns the page. Nothing can be added after it. */
  end(): readonly Buffer[] {
    appendText(this.output, ']}');
    this.flush();
    return this.pieces;
  }

  private flush(): void {
    const { bytes, at } = this.output;
    this.pieces.push(bytes.subarray(0, at));
    this.output = { bytes: Buffer.allocUnsafe(PIECE_ROOM_BYTES), at: 0 };
  }
}
