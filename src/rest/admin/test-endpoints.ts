/** For tests of other programs, in any language: they empty the server and move its time. */
import type { OwnEndpoints } from '../own-endpoints.ts';

export interface TestControls {
  reset(): Promise<void>;
  advance(seconds: number): Promise<void>;
}

/** Whether the server lets itself be tested is for the controls to say. */
export function testEndpoints({ reset, advance }: TestControls): OwnEndpoints {
  return {
    'POST /_holdfast/reset': async () => {
      await reset();
      return { status: 204 };
    },
    'POST /_holdfast/clock/advance': async ({ query }) => {
      await advance(Number(query.seconds || Number.NaN));
      return { status: 204 };
    },
  };
}
