import { once } from 'node:events';
import type { OtherWriter } from '../../src/partition/conformance/suite.ts';

/** With writer.mjs, in a thread or in a process. */
export async function conversation(other: NodeJS.EventEmitter, tell: (message: object) => void): Promise<OtherWriter> {
  await once(other, 'message');
  const order = async (message: object): Promise<void> => {
    const answered = once(other, 'message');
    tell(message);
    await answered;
  };
  return {
    put: (key, value) => order({ key, value }),
    add: (key, n) => order({ key, n }),
    async end() {
      const gone = once(other, 'exit');
      tell({ end: true });
      await gone;
    },
  };
}
