/** Operations of Azure's Blob service that this server does not have yet: each is refused by its name, never with a misleading 400 or 404. */
import type { Storage } from '../../services/common/storage.ts';
import { notImplementedOperation, type Operation } from '../operation.ts';

const BLOB = '/{container}/{blob}';
const CONTAINER = '/{container}';

export const notImplementedOperations: readonly Operation<Storage>[] = [
  notImplementedOperation('Get User Delegation Key', 'POST /', { comp: 'userdelegationkey', restype: 'service' }),
  notImplementedOperation('Create Session', `POST ${CONTAINER}`, { restype: 'container', comp: 'session' }),

  notImplementedOperation('Set Blob Expiry', `PUT ${BLOB}`, { comp: 'expiry' }),
  notImplementedOperation('Set Blob Immutability Policy', `PUT ${BLOB}`, { comp: 'immutabilityPolicies' }),
  notImplementedOperation('Delete Blob Immutability Policy', `DELETE ${BLOB}`, { comp: 'immutabilityPolicies' }),
  notImplementedOperation('Set Blob Legal Hold', `PUT ${BLOB}`, { comp: 'legalhold' }),
  notImplementedOperation('Query Blob Contents', `POST ${BLOB}`, { comp: 'query' }),

  ...['AppendBlob', 'PageBlob'].flatMap((type) => {
    const headers = { 'x-ms-blob-type': type, 'x-ms-copy-source': true } as const;
    return [
      notImplementedOperation<Storage>('Put Blob From URL', `PUT ${BLOB}`, {}, headers),
      notImplementedOperation<Storage>(
        'Put Blob From URL',
        `PUT ${BLOB}`,
        {},
        { ...headers, 'x-ms-requires-sync': 'true' },
      ),
    ];
  }),
];
