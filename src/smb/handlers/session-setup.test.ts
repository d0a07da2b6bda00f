import { afterEach, beforeEach, expect, it } from 'vitest';
import { ACCOUNT, TestSmbServer } from '../../../test/support/smb-server.ts';

let server: TestSmbServer;
beforeEach(async () => {
  server = await TestSmbServer.start();
});
afterEach(() => server.stop());

it('A connection that is bound to a session takes its own key, not that of the session', async () => {
  const { sessionId, signer } = await server.signIn();
  const other = await server.connect();
  await other.negotiate();
  Object.assign(other, { sessionId, signer });
  const bind = async () => (await other.signIn(ACCOUNT.name, ACCOUNT.keys[0]!, { flags: 1 })).status;
  expect(await bind()).toBe('STATUS_SUCCESS');
  expect(await bind()).toBe('STATUS_ACCESS_DENIED');
});
