/** The fields of a CREATE and what they ask for: options, disposition, access mask, attributes (MS-SMB2 2.2.13, MS-FSA 2.1.5.1). */
import { type Disposition, grantRights, STORED_ATTRIBUTES } from '../../services/file/open-request.ts';
import { SmbError } from '../statuses.ts';
import { CREATE_OPTIONS, type CreateRequest } from '../wire/create.ts';

/** In the order of their numbers. */
const DISPOSITIONS: readonly Disposition[] = ['supersede', 'open', 'create', 'openIf', 'overwrite', 'overwriteIf'];
const IMPERSONATION_LEVEL_MAX = 3;
const SHARE_ACCESS = 0x7;
/** All that MS-FSCC 2.6 knows, but for those that only a file system sets. */
const VALID_ATTRIBUTES = 0x7fb7;

const { directoryFile, nonDirectoryFile, deleteOnClose } = CREATE_OPTIONS;
const UNKNOWN_OPTIONS = 0xff00_0000;
const REFUSED_OPTIONS =
  CREATE_OPTIONS.createTreeConnection | CREATE_OPTIONS.openByFileId | CREATE_OPTIONS.reserveOpfilter;
/** What FileModeInformation shows of the options. */
const MODE_OPTIONS =
  CREATE_OPTIONS.writeThrough |
  CREATE_OPTIONS.sequentialOnly |
  CREATE_OPTIONS.noIntermediateBuffering |
  CREATE_OPTIONS.synchronousIoAlert |
  CREATE_OPTIONS.synchronousIoNonalert |
  deleteOnClose;

export interface CheckedCreate {
  readonly disposition: Disposition;
  readonly kind: 'directory' | 'file' | 'any';
  readonly rights: number;
  readonly attributes: number;
  readonly deletesOnClose: boolean;
}

/** @param maximum the rights that the client can have */
export function checkCreateRequest(request: CreateRequest, maximum: number): CheckedCreate {
  const { createOptions: options, fileAttributes, shareAccess } = request;
  if (request.impersonationLevel > IMPERSONATION_LEVEL_MAX) throw new SmbError('BAD_IMPERSONATION_LEVEL');
  const disposition = DISPOSITIONS[request.createDisposition];
  if (disposition === undefined || shareAccess & ~SHARE_ACCESS || options & UNKNOWN_OPTIONS)
    throw new SmbError('INVALID_PARAMETER');
  if (options & REFUSED_OPTIONS) throw new SmbError('NOT_SUPPORTED');
  const rights = grantRights(request.desiredAccess, maximum);
  if (rights === undefined) throw new SmbError('ACCESS_DENIED');
  if (fileAttributes & ~VALID_ATTRIBUTES) throw new SmbError('INVALID_PARAMETER');
  const kind = kindFrom(options);
  const replaces = disposition === 'supersede' || disposition === 'overwrite' || disposition === 'overwriteIf';
  if (kind === 'directory' && replaces) throw new SmbError('INVALID_PARAMETER');
  const deletesOnClose = (options & deleteOnClose) !== 0;
  return { disposition, kind, rights, attributes: fileAttributes & STORED_ATTRIBUTES, deletesOnClose };
}

function kindFrom(options: number): CheckedCreate['kind'] {
  if (options & directoryFile && options & nonDirectoryFile) throw new SmbError('INVALID_PARAMETER');
  if (options & directoryFile) return 'directory';
  return options & nonDirectoryFile ? 'file' : 'any';
}

export const modeFrom = ({ createOptions }: CreateRequest): number => createOptions & MODE_OPTIONS;
