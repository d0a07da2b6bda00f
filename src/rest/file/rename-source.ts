/** The source of Rename Directory and Rename File: the URL of a directory or file in the share of the request. */
import { fail } from '../../services/file/errors.ts';
import type { Reader, Request } from '../operation.ts';
import { booleanHeader, invalidHeader, reader, requiredHeader } from '../params.ts';
import { parseAddress } from '../request.ts';
import { parseFilePath } from './params.ts';

const HEADER = 'x-ms-file-rename-source';
const SOURCE = /^https?:\/\/([^/?#@]+)\/[^#]*$/i;
const url = requiredHeader(HEADER);
const keepsTrailingDots = booleanHeader('x-ms-source-allow-trailing-dot');

export interface RenameSource {
  readonly path: string;
  readonly keepsTrailingDots: boolean | undefined;
}

export const renameSource: Reader<RenameSource> = reader((request) => {
  checkScope(request);
  const text = url.read(request);
  const host = SOURCE.exec(text)?.[1];
  if (host === undefined) throw invalidHeader(HEADER, text);
  const { account, container, item } = parseAddress(text, host, (name) => name === request.account, parseFilePath);
  if (account !== request.account || container !== request.container || item === '') throw invalidHeader(HEADER, text);
  return { path: item, keepsTrailingDots: keepsTrailingDots.read(request) };
});

/** A signature for one file covers the destination only. */
function checkScope({ query }: Request): void {
  if (query.sig !== undefined && query.sr?.toLowerCase() === 'f') throw fail('AuthorizationPermissionMismatch');
}
