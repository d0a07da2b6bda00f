/** NTSTATUS codes (MS-ERREF 2.3.1), and the one that each error of the services becomes. */
import { asStorageError, isOutOfSpace, type StorageError } from '../services/common/errors.ts';
import { WireError } from './wire/reader.ts';

export const STATUS = {
  SUCCESS: 0x0000_0000,
  PENDING: 0x0000_0103,
  NOTIFY_CLEANUP: 0x0000_010b,
  NOTIFY_ENUM_DIR: 0x0000_010c,
  BUFFER_OVERFLOW: 0x8000_0005,
  NO_MORE_FILES: 0x8000_0006,
  STOPPED_ON_SYMLINK: 0x8000_002d,
  UNSUCCESSFUL: 0xc000_0001,
  NOT_IMPLEMENTED: 0xc000_0002,
  INVALID_INFO_CLASS: 0xc000_0003,
  INFO_LENGTH_MISMATCH: 0xc000_0004,
  INVALID_HANDLE: 0xc000_0008,
  INVALID_PARAMETER: 0xc000_000d,
  NO_SUCH_FILE: 0xc000_000f,
  INVALID_DEVICE_REQUEST: 0xc000_0010,
  END_OF_FILE: 0xc000_0011,
  INVALID_VIEW_SIZE: 0xc000_001f,
  MORE_PROCESSING_REQUIRED: 0xc000_0016,
  ACCESS_DENIED: 0xc000_0022,
  BUFFER_TOO_SMALL: 0xc000_0023,
  OBJECT_NAME_INVALID: 0xc000_0033,
  OBJECT_NAME_NOT_FOUND: 0xc000_0034,
  OBJECT_NAME_COLLISION: 0xc000_0035,
  OBJECT_PATH_INVALID: 0xc000_0039,
  OBJECT_PATH_NOT_FOUND: 0xc000_003a,
  OBJECT_PATH_SYNTAX_BAD: 0xc000_003b,
  DATA_ERROR: 0xc000_003e,
  SHARING_VIOLATION: 0xc000_0043,
  EAS_NOT_SUPPORTED: 0xc000_004f,
  NO_EAS_ON_FILE: 0xc000_0052,
  FILE_LOCK_CONFLICT: 0xc000_0054,
  LOCK_NOT_GRANTED: 0xc000_0055,
  DELETE_PENDING: 0xc000_0056,
  PRIVILEGE_NOT_HELD: 0xc000_0061,
  LOGON_FAILURE: 0xc000_006d,
  INVALID_SECURITY_DESCR: 0xc000_0079,
  RANGE_NOT_LOCKED: 0xc000_007e,
  DISK_FULL: 0xc000_007f,
  INSUFFICIENT_RESOURCES: 0xc000_009a,
  MEDIA_WRITE_PROTECTED: 0xc000_00a2,
  BAD_IMPERSONATION_LEVEL: 0xc000_00a5,
  INVALID_PIPE_STATE: 0xc000_00ad,
  PIPE_BUSY: 0xc000_00ae,
  PIPE_DISCONNECTED: 0xc000_00b0,
  IO_TIMEOUT: 0xc000_00b5,
  FILE_IS_A_DIRECTORY: 0xc000_00ba,
  NOT_SUPPORTED: 0xc000_00bb,
  NETWORK_NAME_DELETED: 0xc000_00c9,
  NETWORK_ACCESS_DENIED: 0xc000_00ca,
  BAD_DEVICE_TYPE: 0xc000_00cb,
  BAD_NETWORK_NAME: 0xc000_00cc,
  REQUEST_NOT_ACCEPTED: 0xc000_00d0,
  NOT_SAME_DEVICE: 0xc000_00d4,
  PIPE_EMPTY: 0xc000_00d9,
  INVALID_OPLOCK_PROTOCOL: 0xc000_00e3,
  INTERNAL_ERROR: 0xc000_00e5,
  UNEXPECTED_IO_ERROR: 0xc000_00e9,
  DIRECTORY_NOT_EMPTY: 0xc000_0101,
  NOT_A_DIRECTORY: 0xc000_0103,
  TOO_MANY_OPENED_FILES: 0xc000_011f,
  CANCELLED: 0xc000_0120,
  CANNOT_DELETE: 0xc000_0121,
  FILE_CLOSED: 0xc000_0128,
  INVALID_DEVICE_STATE: 0xc000_0184,
  FS_DRIVER_REQUIRED: 0xc000_019c,
  USER_SESSION_DELETED: 0xc000_0203,
  NOT_FOUND: 0xc000_0225,
  INSUFF_SERVER_RESOURCES: 0xc000_0205,
  NETWORK_SESSION_EXPIRED: 0xc000_035c,
  SMB_BAD_CLUSTER_DIALECT: 0xc05d_0001,
  HASH_NOT_SUPPORTED: 0xc000_a100,
  SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP: 0xc05d_0000,
  REQUEST_OUT_OF_SEQUENCE: 0xc000_042a,
  FILE_NOT_AVAILABLE: 0xc000_0467,
} as const;

export type StatusName = keyof typeof STATUS;

const namesByCode = new Map<number, string>(Object.entries(STATUS).map(([name, code]) => [code, `STATUS_${name}`]));

/** For logs. */
export function formatStatus(code: number): string {
  return namesByCode.get(code) ?? `0x${code.toString(16).padStart(8, '0')}`;
}

/** A refusal with this status. An answer, not a bug: it has no stack. */
export class SmbError extends Error {
  override readonly name = 'SmbError';
  readonly status: number;
  /** ErrorData of the answer (MS-SMB2 2.2.2): of BUFFER_TOO_SMALL, the length that would do. */
  readonly data: Buffer | undefined;

  constructor(status: StatusName, data?: Buffer) {
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super(`STATUS_${status}`);
    Error.stackTraceLimit = limit;
    this.status = STATUS[status];
    this.data = data;
  }
}

/** Codes of services, for a caller that is in a tree. */
const statusesByCode: Readonly<Record<string, StatusName>> = {
  AuthorizationFailure: 'ACCESS_DENIED',
  HandleLimitExceeded: 'TOO_MANY_OPENED_FILES',
  HandleClosed: 'FILE_CLOSED',
  CannotDelete: 'CANNOT_DELETE',
  AccessDenied: 'ACCESS_DENIED',
  CannotDeleteFileOrDirectory: 'CANNOT_DELETE',
  DataCorrupted: 'DATA_ERROR',
  DeletePending: 'DELETE_PENDING',
  DirectoryNotEmpty: 'DIRECTORY_NOT_EMPTY',
  FileInvalidPermission: 'INVALID_SECURITY_DESCR',
  FileLockConflict: 'FILE_LOCK_CONFLICT',
  InvalidFileOrDirectoryPathName: 'OBJECT_NAME_INVALID',
  InvalidRange: 'END_OF_FILE',
  InvalidResourceName: 'OBJECT_NAME_INVALID',
  LeaseIdMissing: 'SHARING_VIOLATION',
  NotImplemented: 'NOT_SUPPORTED',
  ParentNotFound: 'OBJECT_PATH_NOT_FOUND',
  PendingCopyOperation: 'SHARING_VIOLATION',
  ReadOnlyAttribute: 'ACCESS_DENIED',
  ResourceAlreadyExists: 'OBJECT_NAME_COLLISION',
  ResourceNotFound: 'OBJECT_NAME_NOT_FOUND',
  ResourceTypeMismatch: 'OBJECT_NAME_COLLISION',
  ShareBeingDeleted: 'NETWORK_NAME_DELETED',
  ShareNotFound: 'NETWORK_NAME_DELETED',
  ShareSizeLimitReached: 'DISK_FULL',
  ShareSnapshotNotFound: 'NETWORK_NAME_DELETED',
  SharingViolation: 'SHARING_VIOLATION',
  SMBDeletePending: 'DELETE_PENDING',
};

const statusesByHttpStatus: Readonly<Record<number, StatusName>> = {
  400: 'INVALID_PARAMETER',
  403: 'ACCESS_DENIED',
  404: 'OBJECT_NAME_NOT_FOUND',
  409: 'SHARING_VIOLATION',
  412: 'ACCESS_DENIED',
};

/** The answer to a client for this error; undefined: it is a bug. A body that is not what its lengths say is an invalid parameter. */
export function asSmbError(error: unknown): SmbError | undefined {
  if (error instanceof SmbError) return error;
  if (error instanceof WireError) return new SmbError('INVALID_PARAMETER');
  if (isOutOfSpace(error)) return new SmbError('DISK_FULL');
  const refusal = asStorageError(error);
  return refusal && new SmbError(statusNameOf(refusal));
}

function statusNameOf({ code, status }: StorageError): StatusName {
  return statusesByCode[code] ?? statusesByHttpStatus[status] ?? 'INSUFFICIENT_RESOURCES';
}
