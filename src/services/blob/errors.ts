/** Error codes of the Blob service. */
import { commonErrors, errorFactory, errorTable } from '../common/errors.ts';

export const blobErrors = errorTable({
  ...commonErrors,
  AllBatchSubRequestsShouldBeSameApi: [400, 'All batch subrequests should be the same api.'],
  BlobAlreadyExists: [409, 'The specified blob already exists.'],
  BlobArchived: [409, 'This operation is not permitted on an archived blob.'],
  BlobBeingRehydrated: [409, 'This operation is not permitted because the blob is being rehydrated.'],
  BlobNotFound: [404, 'The specified blob does not exist.'],
  BlobOperationNotSupported: [409, 'Blob operation is not supported.'],
  BlockCountExceedsLimit: [409, 'The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.'],
  BlockListTooLong: [400, 'The block list may not contain more than 50,000 blocks.'],
  CannotVerifyCopySource: [409, 'Could not verify the copy source within the specified time.'],
  ContainerAlreadyExists: [409, 'The specified container already exists.'],
  DuplicateTagNames: [400, 'The tags specified contain a name more than once.'],
  EmptyTagName: [400, 'The name of one of the tags is empty.'],
  ContainerNotFound: [404, 'The specified container does not exist.'],
  CopyIdMismatch: [409, 'The specified copy ID did not match the copy ID for the pending copy operation.'],
  ExceedsMaxBatchRequestCount: [400, 'The batch operation exceeds maximum number of allowed subrequests.'],
  InfiniteLeaseDurationRequired: [
    412,
    'The lease ID matched, but the specified lease must be an infinite-duration lease.',
  ],
  InvalidBlobOrBlock: [400, 'The specified blob or block content is invalid.'],
  InvalidBlobTier: [400, 'The specified blob tier is invalid.'],
  InvalidBlockList: [400, 'The specified block list is invalid.'],
  InvalidTags: [400, 'The tags specified are invalid. It contains characters that are not permitted.'],
  NoPendingCopyOperation: [409, 'There is currently no pending copy operation.'],
  PendingCopyOperation: [409, 'There is currently a pending copy operation.'],
  SnapshotsPresent: [409, 'This operation is not permitted because the blob has snapshots.'],
  SourceConditionNotMet: [412, 'The source condition specified using HTTP conditional header(s) is not met.'],
  TagsTooLarge: [400, 'The tags specified exceed the maximum permissible limit.'],
  UnauthorizedBlobOverwrite: [403, 'This request is not authorized to perform blob overwrites.'],
  UnsatisfiableCondition: [400, 'The request includes an unsatisfiable condition for this operation.'],
  LeaseAlreadyPresent: [409, 'There is already a lease present.'],
  LeaseIdMismatchWithBlobOperation: [412, 'The lease ID specified did not match the lease ID for the blob.'],
  LeaseIdMismatchWithContainerOperation: [412, 'The lease ID specified did not match the lease ID for the container.'],
  LeaseIdMismatchWithLeaseOperation: [409, 'The lease ID specified did not match the lease ID for the blob.'],
  LeaseIdMissing: [412, 'There is currently a lease on the blob and no lease ID was specified in the request.'],
  LeaseIsBreakingAndCannotBeAcquired: [409, 'The lease is breaking and cannot be acquired until it is broken.'],
  LeaseIsBreakingAndCannotBeChanged: [409, 'The lease is breaking and cannot be changed.'],
  LeaseIsBrokenAndCannotBeRenewed: [
    409,
    'The lease ID matched, but the lease has been broken explicitly and cannot be renewed.',
  ],
  LeaseLost: [412, 'A lease ID was specified, but the lease for the blob has expired.'],
  LeaseNotPresentWithBlobOperation: [412, 'There is currently no lease on the blob.'],
  LeaseNotPresentWithContainerOperation: [412, 'There is currently no lease on the container.'],
  LeaseNotPresentWithLeaseOperation: [409, 'There is currently no lease on the blob.'],
});

export const fail = errorFactory(blobErrors);
export type BlobErrorCode = keyof typeof blobErrors;
