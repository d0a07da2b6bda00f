/** Classifies errors of PostgreSQL and of the connection to it: conflict, rolled back, unavailable, cannot open. */
import { Unavailable } from '../partition.ts';

/** The store cannot be opened; the message is one line for the operator. */
export class CannotOpen extends Error {
  override readonly name = 'CannotOpen';
}

/** SQLSTATE; a broken connection has none, or an error name of the system. */
function errorCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

const CONFLICTS = new Set(['40001', '40P01', '55P03', '23505']);
/** Classes of SQLSTATE for connections, resources, operator intervention and the system: a retry may succeed. */
const TRANSIENT = /^(08|25006|40|53|55|57|58)/;
const SQLSTATE = /^[0-9A-Z]{5}$/;

/** Deadlocks and lock time-outs, and a barred commit id. */
export const isConflict = (error: unknown): boolean => CONFLICTS.has(errorCode(error) ?? '');

/** Whether the server said that the transaction is rolled back. Otherwise the outcome is unknown. */
export function isRolledBack(error: unknown): boolean {
  const code = errorCode(error) ?? '';
  return SQLSTATE.test(code) && !/^(08|57P|58|XX)/.test(code);
}

/** Transient errors become Unavailable; others stay as they are. */
export function asUnavailable(error: unknown): Error {
  if (error instanceof Unavailable) return error;
  const code = errorCode(error);
  if (code === undefined || !SQLSTATE.test(code) || TRANSIENT.test(code)) {
    // Clients see the message: it must not say where the database is.
    return new Unavailable('The database does not answer.', { cause: error });
  }
  return error instanceof Error ? error : new Error(String(error));
}

export function asCannotOpen(
  error: unknown,
  { address, user, database }: Record<'address' | 'user' | 'database', string>,
) {
  if (error instanceof CannotOpen) return error;
  const code = errorCode(error) ?? '';
  const answers: Record<string, string> = {
    '28P01': `PostgreSQL at ${address} refuses the password of ${user}.`,
    '28000': `PostgreSQL at ${address} does not let ${user} in: ${oneLine(error)}.`,
    '3D000': `PostgreSQL at ${address} has no database ${database}.`,
    '42501': `${user} lacks rights in the database ${database} at ${address}: ${oneLine(error)}.`,
    '53300': `PostgreSQL at ${address} has no connection left: ${oneLine(error)}.`,
    '25006': `PostgreSQL at ${address} is a read-only standby: Holdfast needs the primary.`,
  };
  const known = answers[code];
  if (known) return new CannotOpen(known);
  if (SQLSTATE.test(code)) return new CannotOpen(`PostgreSQL at ${address} answers: ${oneLine(error)} (${code}).`);
  return new CannotOpen(`PostgreSQL at ${address} does not answer: ${oneLine(error)}.`);
}

function oneLine(error: unknown): string {
  const { message = '' } = error as { message?: string };
  return (message || errorCode(error) || String(error)).split('\n')[0]!.replace(/\.$/, '');
}
