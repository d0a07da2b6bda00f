/** Progress bar: one line that is rewritten in place, on a terminal only. */
import type { WriteStream } from 'node:tty';

const CLEAR_LINE = '\r\x1b[K';
const CELLS = 30;

export interface Progress {
  readonly what: string;
  readonly done: number;
  /** Undefined: not known. */
  readonly total?: number | undefined;
}

export function progressBar(terminal: Pick<WriteStream, 'isTTY' | 'write'>) {
  let shown = '';
  function print(line: string): void {
    if (terminal.isTTY && line !== shown) terminal.write(CLEAR_LINE + line);
    shown = line;
  }
  return {
    show({ what, done, total }: Progress): void {
      print(`${what} ${total === undefined ? done : bar(total === 0 ? 1 : done / total)}`);
    },
    clear: () => print(''),
  };
}

function bar(share: number): string {
  const cells = Math.floor(share * CELLS);
  return `[${'#'.repeat(cells)}${'.'.repeat(CELLS - cells)}] ${Math.floor(share * 100)} %`;
}
