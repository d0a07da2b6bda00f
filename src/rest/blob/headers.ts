/** Headers that this service takes only in part, for now. */
import { StorageError } from '../../services/errors.ts';
import { notImplemented, type Reader, type Request } from '../operation.ts';
import { invalidHeader, reader } from '../params.ts';

/** Every container is private: anything else is what Azure answers for an account that forbids public access. */
export const noPublicAccess: Reader<void> = reader((request) => {
  const value = lowerCase(request, 'x-ms-blob-public-access');
  if (value === undefined || value === '') return;
  if (value !== 'container' && value !== 'blob') throw invalidHeader('x-ms-blob-public-access', value);
  throw new StorageError('PublicAccessNotPermitted', 409, 'Public access is not permitted on this storage account.');
});

/** There are no snapshots yet, so that a blob and its snapshots is just the blob. */
export const deleteSnapshots: Reader<void> = reader((request) => {
  const value = lowerCase(request, 'x-ms-delete-snapshots');
  if (value === 'only') throw notImplemented('x-ms-delete-snapshots: only is not implemented by this server yet.');
  if (value !== undefined && value !== 'include') throw invalidHeader('x-ms-delete-snapshots', value);
});

function lowerCase({ headers }: Request, name: string): string | undefined {
  const value = headers[name];
  return value === undefined ? undefined : String(value).toLowerCase();
}
