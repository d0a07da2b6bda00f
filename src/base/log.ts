/** The server's log: destination, level and format. */
import { pino } from 'pino';
import { LogOutput, standardOutput } from './log-output.ts';

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

/** Throws if the file cannot be opened. */
export function openLog({ level, format, file }: LogSettings): Log {
  const output = file === undefined ? standardOutput : fileOutput(file);
  return pino(
    {
      ...{ level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (json) => output.write(format === 'json' ? json : formatLine(json)) },
  );
}

/** Written synchronously: a crash would lose the lines that matter. */
function fileOutput(file: string): LogOutput {
  const destination = pino.destination({ dest: file, sync: true, mkdir: true });
  return new LogOutput(() => destination);
}

/** A line for people: time, level, message, and the fields as name=value; stacks below. */
export function formatLine(json: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(json) as Record<string, unknown> & {
    err?: { stack?: string };
  };
  let line = `${time} ${String(level).toUpperCase().padEnd(5)} ${msg ?? ''}`;
  for (const [name, value] of Object.entries(fields)) {
    line += ` ${name}=${typeof value === 'string' ? quoted(value) : JSON.stringify(value)}`;
  }
  return `${line}${err?.stack ? `\n${err.stack}` : ''}\n`;
}

function quoted(text: string): string {
  return /^[\w./:?&=%$-]+$/.test(text) ? text : JSON.stringify(text);
}
