/** Front ends ask here; the decisions are in the rules. */
import { type CorsRule, type Preflight, preflightRule } from '../../rules/cors.ts';
import { errorTable, raising } from './errors.ts';

export { CORS_METHODS, exposedNames, sharingOf } from '../../rules/cors.ts';

const fail = raising(
  errorTable({
    CorsPreflightFailure: [403, 'CORS not enabled or no matching rule found for this request.'],
  }),
);

export function allowPreflight(rules: readonly CorsRule[], asked: Preflight): CorsRule {
  const rule = preflightRule(rules, asked);
  if (rule) return rule;
  const reason = rules.length === 0 ? 'CORS is not enabled for this account.' : 'No CORS rules matches this request';
  throw fail('CorsPreflightFailure', { MessageDetails: reason });
}
