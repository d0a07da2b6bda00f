/** Where the log goes, and how much of it. */
import { type DestinationStream, pino } from 'pino';

interface Write {
  (message: string): void;
  (fields: object, message: string): void;
}

export interface Log {
  readonly debug: Write;
  readonly info: Write;
  readonly warn: Write;
  readonly error: Write;
  isLevelEnabled(level: string): boolean;
}

export interface LogSettings {
  readonly level: 'silent' | 'error' | 'warn' | 'info' | 'debug';
  readonly format: 'text' | 'json';
  /** Instead of standard output. */
  readonly file?: string | undefined;
}

export const silentLog: Log = pino({ level: 'silent' });

export function openLog({ level, format, file }: LogSettings): Log {
  // Standard output is written as lines come: a log that is lost in a crash would miss the lines that matter.
  const destination = pino.destination({ dest: file ?? 1, sync: true, mkdir: true });
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    { write: (json) => writeTo(destination, format === 'json' ? json : formatLine(json)) },
  );
}

/** A log that cannot be written, on a full disk say, must not end what it tells of. */
function writeTo(destination: DestinationStream, line: string): void {
  try {
    destination.write(line);
  } catch {
    // There is nowhere left to say so.
  }
}

const LABELS: Readonly<Record<number, string>> = { 20: 'DEBUG', 30: 'INFO ', 40: 'WARN ', 50: 'ERROR', 60: 'FATAL' };

/** A line for people: time, level, message, and the fields as name=value; stacks go below. */
export function formatLine(json: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(json) as Record<string, unknown> & {
    err?: { stack?: string };
  };
  let line = `${time} ${LABELS[Number(level)] ?? level} ${msg ?? ''}`;
  for (const [name, value] of Object.entries(fields)) {
    line += ` ${name}=${typeof value === 'string' ? quoted(value) : JSON.stringify(value)}`;
  }
  return `${line}${err?.stack ? `\n${err.stack}` : ''}\n`;
}

function quoted(text: string): string {
  return /^[\w./:?&=%$-]+$/.test(text) ? text : JSON.stringify(text);
}
