/** Headers of share operations, some of which this server takes in part: the account is a general-purpose one. */
import type { DeleteShareSnapshots } from '../../services/file/share-snapshots.ts';
import type { Reader } from '../operation.ts';
import { header, invalidHeader, invalidQuery, reader } from '../params.ts';

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

/** A snapshot has none. */
export const deleteSnapshots: Reader<DeleteShareSnapshots> = reader((request) => {
  const value = snapshots.read(request);
  const asked = value?.toLowerCase();
  if (asked === undefined) return undefined;
  if (asked !== 'include' && asked !== 'include-leased') throw invalidHeader('x-ms-delete-snapshots', value!);
  const { sharesnapshot } = request.query;
  if (sharesnapshot !== undefined) throw invalidQuery('sharesnapshot', sharesnapshot);
  return asked;
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
