/** The one message of SMB1 that is understood: a NEGOTIATE that offers SMB2, too (MS-SMB2 3.3.5.3.1). */
import { type Connection, Disconnect } from '../connection.ts';
import { STATUS } from '../statuses.ts';
import { HEADER_FLAG, NO_SIGNATURE, writeHeader } from '../wire/header.ts';
import { NegotiateResponse } from '../wire/negotiate.ts';
import { readSmb1Dialects } from '../wire/smb1-negotiate.ts';
import { Writer } from '../wire/writer.ts';
import { wildcardResponse } from './negotiate.ts';

/** A client that offers no more than 2.0.2 is not served. */
const WILDCARD_DIALECT = 'SMB 2.???';

export function answerSmb1Negotiate(connection: Connection, packet: Buffer): void {
  if (connection.negotiated || connection.expectsSecondNegotiate) throw new Disconnect('a second NEGOTIATE');
  if (!readSmb1Dialects(packet).includes(WILDCARD_DIALECT)) throw new Disconnect('a client of SMB1');
  connection.expectsSecondNegotiate = true;
  // The SMB1 message stands for MessageId 0, and the next one has 1, as the answer's credit allows; some clients begin again at 0.
  const writer = new Writer();
  writeHeader(writer, {
    ...{ creditCharge: 0, command: 0, status: STATUS.SUCCESS, credits: connection.window.grant(1), nextCommand: 0 },
    ...{ flags: HEADER_FLAG.response, messageId: 0n, asyncId: 0n, treeId: 0, sessionId: 0n, signature: NO_SIGNATURE },
  });
  NegotiateResponse.append(writer, wildcardResponse(connection));
  connection.send(writer.finish());
  connection.server.observe({ connection }, 'negotiate', STATUS.SUCCESS);
}
