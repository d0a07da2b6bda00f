import { expect, it } from 'vitest';
import { runClient } from './run-client.ts';
import { accountKey } from './test-server.ts';

it('hides the key of a client that fails', async () => {
  const script = 'console.error(process.argv[1]); process.exit(1)';
  const failed = await runClient(process.execPath, ['-e', script, accountKey]).catch((error: Error) => error);
  expect(failed).toMatchObject({ name: 'ClientFailed', stderr: '(key)\n' });
  expect(JSON.stringify({ ...failed, message: (failed as Error).message })).not.toContain(accountKey);
});
