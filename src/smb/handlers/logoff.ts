/** LOGOFF (MS-SMB2 3.3.5.6). */
import type { SessionContext } from '../command.ts';
import type { EmptyBody } from '../wire/empty.ts';

export async function logoff(_request: EmptyBody, { connection, session }: SessionContext): Promise<EmptyBody> {
  await connection.server.endSession(session, 'LOGOFF');
  return {};
}
