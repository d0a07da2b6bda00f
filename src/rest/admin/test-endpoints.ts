/** Management endpoints for test suites in any language: reset the server, advance its clock. */
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import { isLocalPeer } from './guard.ts';
import type { ManagementCall, ManagementEndpoints } from './management-endpoints.ts';

const fail = errorFactory(commonErrors);

interface TestControls {
  reset(): Promise<void>;
  advance(seconds: number): Promise<void>;
  /** Whether calls from other machines are accepted. */
  readonly allowsRemote: boolean;
}

/** The controls decide whether the server permits resets and clock changes. */
export function testEndpoints({ reset, advance, allowsRemote }: TestControls): ManagementEndpoints {
  /** These endpoints need no signature, so web pages must not reach them through a user's browser. */
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
