/** The server's log: destination, level and format. */
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
  // Written synchronously: a crash would lose the lines that matter.
  const destination = pino.destination({ dest: file ?? 1, sync: true, mkdir: true });
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    { write: (json) => writeTo(destination, format === 'json' ? json : formatLine(json)) },
  );
}

/** A log that cannot be written, on a full disk for example, must not end the server. */
function writeTo(destination: DestinationStream, line: string): void {
  try {
    destination.write(line);
  } catch {
    // There is nowhere to report it.
  }
}

const LABELS: Readonly<Record<number, string>> = { 20: 'DEBUG', 30: 'INFO ', 40: 'WARN ', 50: 'ERROR', 60: 'FATAL' };

/** A line for people: time, level, message, and the fields as name=value; stacks below. */
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
