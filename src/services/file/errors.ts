/** Error codes of the File service. */
import { commonErrors, errorFactory, errorTable } from '../common/errors.ts';

export const fileErrors = errorTable({
  ...commonErrors,
  CannotConvertToSddlDueToCustomAce: [
    400,
    'The permission cannot be converted to SDDL because an entry of its lists has no form in SDDL.',
  ],
  /** Of opens through SMB alone, as are HandleClosed and CannotDelete. */
  AccessDenied: [403, 'The specified resource does not allow this access.'],
  CannotDelete: [409, 'The specified resource cannot be deleted.'],
  CannotDeleteFileOrDirectory: [
    409,
    'The file or directory could not be deleted because it is in use by an SMB client.',
  ],
  CannotVerifyCopySource: [409, 'Could not verify the copy source within the specified time.'],
  CopyIdMismatch: [409, 'The specified copy ID did not match the copy ID for the pending copy operation.'],
  DeleteShareWhenSnapshotLeased: [
    409,
    'Unable to delete share because one or more share snapshots have active leases. Release the share snapshot leases or delete the share with the include-leased parameter for x-ms-delete-snapshots.',
  ],
  DirectoryNotEmpty: [409, 'The specified directory is not empty.'],
  FileGenerationMismatch: [409, 'The file has been recreated since the previous snapshot was taken.'],
  FileInvalidPermission: [400, 'The specified file permission is not valid.'],
  FileInvalidPermissionKey: [400, 'The specified file permission key is not valid.'],
  HandleClosed: [409, 'The handle is not open any more.'],
  HandleLimitExceeded: [400, 'The limit of open handles on the specified resource is reached.'],
  InvalidFileOrDirectoryPathName: [400, 'The specified file or directory path is invalid.'],
  NoPendingCopyOperation: [409, 'There is currently no pending copy operation.'],
  ParentNotFound: [404, 'The specified parent path does not exist.'],
  PendingCopyOperation: [409, 'There is currently a pending copy operation.'],
  ReadOnlyAttribute: [409, 'The specified resource is read-only and cannot be modified at this time.'],
  ResourceAlreadyExists: [409, 'The specified resource already exists.'],
  ResourceTypeMismatch: [409, 'The specified resource type does not match the type of the existing resource.'],
  ShareAlreadyExists: [409, 'The specified share already exists.'],
  ShareBeingDeleted: [409, 'The specified share is being deleted. Try operation later.'],
  ShareHasSnapshots: [409, 'The share has snapshots and the operation requires no snapshots.'],
  ShareNotFound: [404, 'The specified share does not exist.'],
  ShareSizeLimitReached: [400, 'The share size limit is reached.'],
  ShareSnapshotCountExceeded: [409, 'The total number of snapshots for the share is over the limit.'],
  ShareSnapshotNotFound: [404, 'The specified share snapshot does not exist.'],
  ShareSnapshotOperationNotSupported: [400, 'The specified operation is not supported on a share snapshot.'],
  SMBDeletePending: [409, 'The specified resource is marked for deletion by an SMB client.'],
  SharingViolation: [409, 'The specified resource may be in use by an SMB client.'],
  LeaseAlreadyPresent: [409, 'There is already a lease present.'],
  LeaseIdMismatchWithContainerOperation: [412, 'The lease ID specified did not match the lease ID for the file share.'],
  LeaseIdMismatchWithFileOperation: [412, 'The lease ID specified did not match the lease ID for the file.'],
  LeaseIdMismatchWithLeaseOperation: [409, 'The lease ID specified did not match the lease ID for the file.'],
  LeaseIdMissing: [412, 'There is currently a lease on the file and no lease ID was specified in the request.'],
  LeaseIsBreakingAndCannotBeAcquired: [409, 'The lease is breaking and cannot be acquired until it is broken.'],
  LeaseIsBreakingAndCannotBeChanged: [409, 'The lease is breaking and cannot be changed.'],
  LeaseIsBrokenAndCannotBeRenewed: [
    409,
    'The lease ID matched, but the lease has been broken explicitly and cannot be renewed.',
  ],
  LeaseLost: [412, 'A lease ID was specified, but the lease for the file share has expired.'],
  LeaseNotPresentWithContainerOperation: [412, 'There is currently no lease on the file share.'],
  LeaseNotPresentWithFileOperation: [412, 'There is currently no lease on the file.'],
  LeaseNotPresentWithLeaseOperation: [409, 'There is currently no lease on the file.'],
});

export const fail = errorFactory(fileErrors);
export type FileErrorCode = keyof typeof fileErrors;
