/** Where log lines go. Lines of requests are gathered and written together: a system call for each would cost more than a small request. */

/** What a stream of Node tells about the bytes that it could not write yet. */
export interface LineSink {
  write(text: string): unknown;
  /** The number of bytes that the reader of the output has not taken yet; 0 where writes are synchronous. */
  readonly writableLength?: number;
}

const GATHER_MILLISECONDS = 20;
const GATHERED_CHARACTERS_MAX = 16 << 10;
/** A program that started the server and does not read its output must neither block the server nor fill its memory. */
const UNREAD_BYTES_MAX = 1 << 20;

export class LogOutput {
  readonly #sink: () => LineSink;
  #gathered = '';
  #timer: NodeJS.Timeout | undefined;
  #droppedLines = 0;

  constructor(sink: () => LineSink) {
    this.#sink = sink;
  }

  /** Writes the line, after all that were gathered before it. */
  write(line: string): void {
    this.#gathered += line;
    this.flush();
  }

  /** Writes the line soon. */
  gather(line: string): void {
    this.#gathered += line;
    if (this.#gathered.length >= GATHERED_CHARACTERS_MAX) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), GATHER_MILLISECONDS).unref();
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#gathered;
    this.#gathered = '';
    if (lines === '') return;
    try {
      const sink = this.#sink();
      if ((sink.writableLength ?? 0) > UNREAD_BYTES_MAX) this.#droppedLines += lines.split('\n').length - 1;
      else sink.write(`${this.#droppedNote()}${lines}`);
    } catch {
      // A log that cannot be written, on a full disk for example, must not end the server. There is nowhere to report it.
    }
  }

  #droppedNote(): string {
    const count = this.#droppedLines;
    this.#droppedLines = 0;
    return count === 0 ? '' : `${count} lines of the log are missing here: the output was not read\n`;
  }
}

/** One for the process, so that all lines keep their order. */
export const standardOutput = new LogOutput(() => {
  const { stdout } = process;
  // Whoever read the lines may close the pipe: that is no reason to end.
  if (!stdout.listeners('error').includes(ignore)) stdout.on('error', ignore);
  return stdout;
});

function ignore(): void {}
