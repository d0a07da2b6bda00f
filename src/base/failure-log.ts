import type { Log } from './log.ts';

/** What fails again and again is told when it begins and when it is over. */
export interface Outage {
  readonly isOn: boolean;
  failed(error: unknown): void;
  worked(): void;
}

export function createOutage(
  log: Pick<Log, 'warn' | 'debug'>,
  texts: { readonly begins: string; readonly isOver: string },
  now: () => number = () => performance.now(),
): Outage {
  let since: number | undefined;
  return {
    get isOn() {
      return since !== undefined;
    },
    failed(error) {
      log[since === undefined ? 'warn' : 'debug']({ err: error }, texts.begins);
      since ??= now();
    },
    worked() {
      if (since === undefined) return;
      log.warn({ seconds: Math.round((now() - since) / 100) / 10 }, texts.isOver);
      since = undefined;
    },
  };
}
