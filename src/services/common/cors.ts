/** The refusal of a CORS preflight, for the front ends; the decisions are in rules/cors.ts. */
import { type CorsRule, type Preflight, preflightRule } from '../../rules/cors.ts';
import { errorFactory, errorTable } from './errors.ts';

export { CORS_METHODS, decideCors, exposedNames } from '../../rules/cors.ts';

const fail = errorFactory(
  errorTable({
    CorsPreflightFailure: [403, 'CORS not enabled or no matching rule found for this request.'],
  }),
);

export function checkPreflight(rules: readonly CorsRule[], asked: Preflight): CorsRule {
  const rule = preflightRule(rules, asked);
  if (rule) return rule;
  const reason = rules.length === 0 ? 'CORS is not enabled for this account.' : 'No CORS rules matches this request';
  throw fail('CorsPreflightFailure', { MessageDetails: reason });
}
