import { checkHistory, type Violation } from './checker.ts';
import { describeOperation } from './history.ts';
import type { Recorded } from './load.ts';
import { describeState } from './model.ts';

const LINES_MAX = 40;

/** A violation as text: the failed operation, its possible answers, and the operations that led there. */
export function explain({ blob, reason, prefix, failing, states }: Violation): string {
  const last = prefix.slice(-LINES_MAX);
  const left = prefix.length - last.length;
  return [
    `${blob}: ${reason}:`,
    `  ${describeOperation(failing)}`,
    ...(states.length > 0 ? ['before it the blob was', ...states.map((state) => `  ${describeState(state)}`)] : []),
    `the history until then, ${prefix.length} operations by the time of their calls:`,
    ...(left > 0 ? [`  ... ${left} before`] : []),
    ...last.map((operation) => `  ${describeOperation(operation)}`),
  ].join('\n');
}

/** Checks a recorded history, and prints its size. @returns the violations, as text */
export function report({ operations, softDelete, codes, unknown, unreadable }: Recorded): string[] {
  const started = performance.now();
  const lost = unreadable.map((blob) => `${blob}: it cannot be read any more, ${JSON.stringify(unknown)}`);
  const violations = [...checkHistory(operations, { softDelete, codes }).map(explain), ...lost];
  const seconds = ((performance.now() - started) / 1000).toFixed(2);
  const answered = operations.filter(({ returned }) => returned);
  const refused = answered.filter(({ returned }) => 'refused' in returned!.answer);
  console.log(
    `${answered.length} answers, ${refused.length} of them refusals, without an answer ${JSON.stringify(unknown)}, ` +
      `${violations.length} violations; checked in ${seconds} s`,
  );
  return violations;
}
