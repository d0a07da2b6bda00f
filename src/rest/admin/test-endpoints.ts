/** For tests of other programs, in any language: they empty the server and move its time. */
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import { isLocalPeer } from './guard.ts';
import type { ManagementCall, ManagementEndpoints } from './management-endpoints.ts';

const fail = errorFactory(commonErrors);

export interface TestControls {
  reset(): Promise<void>;
  advance(seconds: number): Promise<void>;
  /** Whether tests on other machines may, too. */
  readonly allowsRemote: boolean;
}

/** Whether the server lets itself be tested is for the controls to say. */
export function testEndpoints({ reset, advance, allowsRemote }: TestControls): ManagementEndpoints {
  /** They need no signature, so that no page of the web may reach them through somebody's browser. */
  function checkCaller({ incoming: { headers, socket } }: ManagementCall): void {
    if (headers.origin !== undefined) throw fail('AuthorizationFailure', undefined, 'No page of the web may do this.');
    if (allowsRemote || isLocalPeer(socket)) return;
    throw fail('AuthorizationFailure', undefined, 'From another machine this needs a server with --test-clock.');
  }

  return {
    'POST /_holdfast/reset': async (call) => {
      checkCaller(call);
      await reset();
      return { status: 204 };
    },
    'POST /_holdfast/clock/advance': async (call) => {
      checkCaller(call);
      await advance(Number(call.query.seconds || Number.NaN));
      return { status: 204 };
    },
  };
}
