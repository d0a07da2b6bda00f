/** Failure log: one warning when failures begin, and one when they end. */
import type { Log } from './log.ts';

export interface FailureLog {
  readonly isFailing: boolean;
  failed(error: unknown): void;
  succeeded(): void;
}

export function createFailureLog(
  log: Pick<Log, 'warn' | 'debug'>,
  texts: { readonly begins: string; readonly isOver: string },
  now: () => number = () => performance.now(),
): FailureLog {
  let since: number | undefined;
  return {
    get isFailing() {
      return since !== undefined;
    },
    failed(error) {
      log[since === undefined ? 'warn' : 'debug']({ err: error }, texts.begins);
      since ??= now();
    },
    succeeded() {
      if (since === undefined) return;
      log.warn({ seconds: Math.round((now() - since) / 100) / 10 }, texts.isOver);
      since = undefined;
    },
  };
}
