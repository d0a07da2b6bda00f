/** Headers of share operations that this server takes in part: the account is a general-purpose one, and there are no share snapshots yet. */
import type { Reader } from '../operation.ts';
import { header, invalidHeader, reader } from '../params.ts';

const protocols = header('x-ms-enabled-protocols');
const squash = header('x-ms-root-squash');
const snapshots = header('x-ms-delete-snapshots');

/** NFS shares need a premium account. */
export const enabledProtocols: Reader<void> = reader((request) => {
  const value = protocols.read(request);
  if (value !== undefined && value.toUpperCase() !== 'SMB') throw invalidHeader('x-ms-enabled-protocols', value);
});

/** It is a setting of NFS shares. */
export const rootSquash: Reader<void> = reader((request) => {
  const value = squash.read(request);
  if (value !== undefined) throw invalidHeader('x-ms-root-squash', value);
});

/** Whatever is asked for, there are no snapshots that it could concern. */
export const deleteSnapshots: Reader<void> = reader((request) => {
  const value = snapshots.read(request);
  if (value !== undefined && !['include', 'include-leased'].includes(value.toLowerCase()))
    throw invalidHeader('x-ms-delete-snapshots', value);
});

/** Settings of the shares of premium accounts. */
export const PREMIUM = [
  'x-ms-share-paid-bursting-enabled',
  'x-ms-share-paid-bursting-max-bandwidth-mibps',
  'x-ms-share-paid-bursting-max-iops',
  'x-ms-share-provisioned-iops',
  'x-ms-share-provisioned-bandwidth-mibps',
  'x-ms-enable-snapshot-virtual-directory-access',
  'x-ms-enable-smb-directory-lease',
];
