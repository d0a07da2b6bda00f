/** For tests of other programs, in any language: they empty the server and move its time. */
import { commonErrors, raising } from '../../services/common/errors.ts';
import { isOfThisMachine } from './guard.ts';
import type { OwnCall, OwnEndpoints } from './management-endpoints.ts';

const fail = raising(commonErrors);

export interface TestControls {
  reset(): Promise<void>;
  advance(seconds: number): Promise<void>;
  /** Whether tests on other machines may, too. */
  readonly forAll: boolean;
}

/** Whether the server lets itself be tested is for the controls to say. */
export function testEndpoints({ reset, advance, forAll }: TestControls): OwnEndpoints {
  /** They need no signature, so that no page of the web may reach them through somebody's browser. */
  function check({ incoming: { headers, socket } }: OwnCall): void {
    if (headers.origin !== undefined) throw fail('AuthorizationFailure', undefined, 'No page of the web may do this.');
    if (forAll || isOfThisMachine(socket)) return;
    throw fail('AuthorizationFailure', undefined, 'From another machine this needs a server with --test-clock.');
  }

  return {
    'POST /_holdfast/reset': async (call) => {
      check(call);
      await reset();
      return { status: 204 };
    },
    'POST /_holdfast/clock/advance': async (call) => {
      check(call);
      await advance(Number(call.query.seconds || Number.NaN));
      return { status: 204 };
    },
  };
}
