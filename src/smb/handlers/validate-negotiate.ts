/** FSCTL_VALIDATE_NEGOTIATE_INFO: whether somebody in between has changed the NEGOTIATE (MS-SMB2 3.3.5.15.12). */
import type { RequestContext } from '../command.ts';
import { Disconnect } from '../connection.ts';
import { DIALECT } from '../dialects.ts';
import type { IoctlRequest } from '../wire/ioctl.ts';
import { ValidateNegotiateRequest, ValidateNegotiateResponse } from '../wire/negotiate.ts';
import { Reader } from '../wire/reader.ts';

export function validateNegotiate({ input, maxOutputResponse }: IoctlRequest, { connection }: RequestContext): Buffer {
  const { negotiated, server } = connection;
  if (!negotiated || negotiated.dialect === DIALECT.smb311) throw new Disconnect('VALIDATE_NEGOTIATE_INFO in 3.1.1');
  const { capabilities, guid, securityMode, dialectCount, dialects } = ValidateNegotiateRequest.decode(input);
  const reader = new Reader(dialects);
  const sentDialects = Array.from({ length: dialectCount }, () => reader.u16());
  const isSame =
    maxOutputResponse >= ValidateNegotiateResponse.size &&
    guid.equals(negotiated.clientGuid) &&
    securityMode === negotiated.clientSecurityMode &&
    capabilities === negotiated.clientCapabilities &&
    sentDialects.length === negotiated.clientDialects.length &&
    sentDialects.every((dialect, index) => dialect === negotiated.clientDialects[index]);
  if (!isSame) throw new Disconnect('the NEGOTIATE was changed on its way');
  return ValidateNegotiateResponse.encode({
    capabilities: negotiated.capabilities,
    guid: server.guid,
    securityMode: negotiated.securityMode,
    dialect: negotiated.dialect,
  });
}
