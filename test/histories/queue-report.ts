import { checkHistory, explain } from './queue-checker.ts';
import { isRefused, messagesOf } from './queue-history.ts';
import type { Recorded } from './queue-load.ts';

/** Checks a recorded history, and prints its size. @returns the violations, as text */
export function report({ operations, unknown }: Recorded): string[] {
  const started = performance.now();
  const violations = checkHistory(operations).map(explain);
  const seconds = ((performance.now() - started) / 1000).toFixed(2);
  const answered = operations.filter(({ returned }) => returned);
  const takes = answered.filter(({ request }) => request.kind === 'get');
  const empty = takes.filter((operation) => messagesOf(operation).length === 0).length;
  const taken = takes.reduce((sum, operation) => sum + messagesOf(operation).length, 0);
  const puts = answered.filter(({ request }) => request.kind === 'put').length;
  const moves = answered.filter(({ request }) => request.kind === 'advance').length;
  console.log(
    `${operations.length} operations, ${answered.length} answers, ${answered.filter(isRefused).length} of them refusals; ` +
      `${puts} messages put, ${taken} handed out, ${empty} times nothing; time moved ${moves} times; ` +
      `without an answer ${JSON.stringify(unknown)}; ${violations.length} violations; checked in ${seconds} s`,
  );
  return violations;
}
