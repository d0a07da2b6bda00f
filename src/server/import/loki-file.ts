/**
 * Reads a database of LokiJS, which is one JSON document, as a stream: one document of a collection is in memory at a time, however
 * large the file is. Only the frame is parsed here, {"collections":[{"name":...,"data":[{...}, ...]}]}; each document by JSON.parse.
 */
import { createReadStream } from 'node:fs';

export type LokiDocument = Readonly<Record<string, unknown>>;

export interface FoundDocument {
  readonly collection: string;
  /** Throws DamagedFile. */
  parse(): LokiDocument;
  /** Where the document ends in the file. */
  readonly end: number;
}

export class DamagedFile extends Error {
  override readonly name = 'DamagedFile';
}

/** Throws DamagedFile at a file that is cut off, or not of this form. */
export async function* readLokiFile(file: string): AsyncGenerator<FoundDocument> {
  const frame = new LokiFrame(file);
  for await (const bytes of createReadStream(file, { highWaterMark: 1 << 20 })) yield* frame.read(bytes as Buffer);
  frame.finish();
}

const [QUOTE, BACKSLASH, COLON, COMMA, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = Buffer.from('"\\:,{}[]');

/** Depths of the frame: inside of the database, of a collection, and of its list of documents. */
const [DATABASE, COLLECTION, DOCUMENTS] = [1, 3, 4];

class LokiFrame {
  readonly #file: string;
  /** Before the bytes that are being read. */
  #position = 0;
  /** The brackets that are open: `{` or `[`. */
  readonly #open: number[] = [];
  #isInString = false;
  #isEscaped = false;
  /** Of the string, or the document, that is being read: the parts in earlier pieces. */
  #parts: Buffer[] = [];
  /** The last key in the database or in a collection. */
  #key = '';
  /** After its colon. */
  #isValue = false;
  #hasCollections = false;
  #collection = '';

  constructor(file: string) {
    this.#file = file;
  }

  *read(bytes: Buffer): Generator<FoundDocument> {
    /** Where the string or the document that is being read begins in this piece; -1: none is. */
    let start = this.#parts.length > 0 ? 0 : -1;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) {
          this.#isInString = false;
          if (this.#isFrame()) {
            this.#endString(this.#take(bytes, start, at), this.#position + at);
            start = -1;
          }
        }
      } else if (byte === QUOTE) {
        this.#isInString = true;
        if (this.#isFrame()) start = at + 1;
      } else if (byte === COLON || byte === COMMA) {
        if (this.#isFrame()) this.#isValue = byte === COLON;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (this.#isDocumentNext(byte)) start = at;
        this.#push(byte, at);
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        this.#pop(byte, at);
        if (this.#open.length === DOCUMENTS && byte === CLOSE_BRACE && start >= 0) {
          yield this.#found(this.#take(bytes, start, at + 1), this.#position + at + 1);
          start = -1;
        }
      }
    }
    if (start >= 0) this.#parts.push(bytes.subarray(start));
    this.#position += bytes.length;
  }

  finish(): void {
    if (this.#open.length > 0 || this.#isInString) throw this.#damaged(`it is cut off after ${this.#position} bytes`);
    if (!this.#hasCollections) throw this.#damaged('it is not a database of Azurite');
  }

  #isFrame(): boolean {
    const depth = this.#open.length;
    return depth === DATABASE || depth === COLLECTION;
  }

  #take(bytes: Buffer, start: number, end: number): Buffer {
    const whole = Buffer.concat([...this.#parts, bytes.subarray(start, end)]);
    this.#parts = [];
    return whole;
  }

  #endString(bytes: Buffer, end: number): void {
    const text = bytes.toString();
    if (!this.#isValue) this.#key = text;
    else if (this.#open.length === COLLECTION && this.#key === 'name')
      this.#collection = this.#parse(`"${text}"`, end) as string;
  }

  #isDocumentNext(byte: number): boolean {
    return this.#open.length === DOCUMENTS && byte === OPEN_BRACE && this.#key === 'data';
  }

  #push(byte: number, at: number): void {
    const depth = this.#open.push(byte);
    if (depth > 1_000) throw this.#damaged(`it is nested too deeply at byte ${this.#position + at}`);
    if (depth === DATABASE + 1 && byte === OPEN_BRACKET && this.#key === 'collections') this.#hasCollections = true;
    this.#isValue = false;
  }

  #pop(byte: number, at: number): void {
    const opened = this.#open.pop();
    if (opened !== (byte === CLOSE_BRACE ? OPEN_BRACE : OPEN_BRACKET))
      throw this.#damaged(`a bracket at byte ${this.#position + at} has no partner`);
  }

  #found(bytes: Buffer, end: number): FoundDocument {
    return { collection: this.#collection, parse: () => this.#parse(bytes.toString(), end) as LokiDocument, end };
  }

  #parse(json: string, end: number): unknown {
    try {
      return JSON.parse(json);
    } catch (error) {
      throw this.#damaged(`what ends at byte ${end} is not JSON (${(error as Error).message})`);
    }
  }

  #damaged(fault: string): DamagedFile {
    return new DamagedFile(`${this.#file} is damaged: ${fault}.`);
  }
}
