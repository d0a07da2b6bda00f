/** What PostgreSQL and the way to it can answer, in the few kinds that matter here. */
import { Unavailable } from '../partition.ts';

/** The store cannot be opened as things are: one line for whoever starts the server. */
export class CannotOpen extends Error {
  override readonly name = 'CannotOpen';
}

/** SQLSTATE; connections that break have none, or one of the system's names. */
export function errorCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

const CONFLICTS = new Set(['40001', '40P01', '55P03', '23505']);
/** Connections, resources, what operators do, the system: it may work in a moment. */
const TRANSIENT = /^(08|25006|40|53|55|57|58)/;
const SQLSTATE = /^[0-9A-Z]{5}$/;

/** Deadlocks and lock time-outs, and an id that was barred. */
export const isConflict = (error: unknown): boolean => CONFLICTS.has(errorCode(error) ?? '');

/** Whether the server said that the transaction is rolled back. It may also have stopped in the middle, or be unreachable. */
export function isRolledBack(error: unknown): boolean {
  const code = errorCode(error) ?? '';
  return SQLSTATE.test(code) && !/^(08|57P|58|XX)/.test(code);
}

/** What a caller is to be told. An error of ours stays what it is. */
export function asUnavailable(error: unknown): Error {
  if (error instanceof Unavailable) return error;
  const code = errorCode(error);
  if (code === undefined || !SQLSTATE.test(code) || TRANSIENT.test(code)) {
    // Callers hear of it, and where the database is does not concern them.
    return new Unavailable('The database does not answer.', { cause: error });
  }
  return error instanceof Error ? error : new Error(String(error));
}

export function asCannotOpen(error: unknown, { place, user, database }: Record<'place' | 'user' | 'database', string>) {
  if (error instanceof CannotOpen) return error;
  const code = errorCode(error) ?? '';
  const answers: Record<string, string> = {
    '28P01': `PostgreSQL at ${place} refuses the password of ${user}.`,
    '28000': `PostgreSQL at ${place} does not let ${user} in: ${oneLine(error)}.`,
    '3D000': `PostgreSQL at ${place} has no database ${database}.`,
    '42501': `${user} lacks rights in the database ${database} at ${place}: ${oneLine(error)}.`,
    '53300': `PostgreSQL at ${place} has no connection left: ${oneLine(error)}.`,
    '25006': `PostgreSQL at ${place} is a read-only standby: Holdfast needs the primary.`,
  };
  const known = answers[code];
  if (known) return new CannotOpen(known);
  if (SQLSTATE.test(code)) return new CannotOpen(`PostgreSQL at ${place} answers: ${oneLine(error)} (${code}).`);
  return new CannotOpen(`PostgreSQL at ${place} does not answer: ${oneLine(error)}.`);
}

function oneLine(error: unknown): string {
  const { message = '' } = error as { message?: string };
  return (message || errorCode(error) || String(error)).split('\n')[0]!.replace(/\.$/, '');
}
