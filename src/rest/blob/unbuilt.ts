/** What Azure's Blob service has and this server does not yet. Each is answered by name, never by a misleading 400 or 404. */
import type { Storage } from '../../services/common/storage.ts';
import { type Operation, unbuilt } from '../operation.ts';

const BLOB = '/{container}/{blob}';
const CONTAINER = '/{container}';

export const unbuiltOperations: readonly Operation<Storage>[] = [
  unbuilt('Get User Delegation Key', 'POST /', { comp: 'userdelegationkey', restype: 'service' }),
  // Clients disagree about restype.
  ...(['/', CONTAINER] as const).flatMap((shape) => [
    unbuilt<Storage>('Blob Batch', `POST ${shape}`, { comp: 'batch' }),
    unbuilt<Storage>('Blob Batch', `POST ${shape}`, { restype: 'container', comp: 'batch' }),
  ]),
  unbuilt('Find Blobs by Tags', 'GET /', { comp: 'blobs' }),

  unbuilt('Restore Container', `PUT ${CONTAINER}`, { restype: 'container', comp: 'undelete' }),
  unbuilt('Rename Container', `PUT ${CONTAINER}`, { restype: 'container', comp: 'rename' }),
  unbuilt('Find Blobs by Tags in Container', `GET ${CONTAINER}`, { restype: 'container', comp: 'blobs' }),
  unbuilt('Create Session', `POST ${CONTAINER}`, { restype: 'container', comp: 'session' }),

  unbuilt('Undelete Blob', `PUT ${BLOB}`, { comp: 'undelete' }),
  unbuilt('Set Blob Expiry', `PUT ${BLOB}`, { comp: 'expiry' }),
  unbuilt('Set Blob Immutability Policy', `PUT ${BLOB}`, { comp: 'immutabilityPolicies' }),
  unbuilt('Delete Blob Immutability Policy', `DELETE ${BLOB}`, { comp: 'immutabilityPolicies' }),
  unbuilt('Set Blob Legal Hold', `PUT ${BLOB}`, { comp: 'legalhold' }),
  unbuilt('Snapshot Blob', `PUT ${BLOB}`, { comp: 'snapshot' }),
  unbuilt('Copy Blob From URL', `PUT ${BLOB}`, {}, { 'x-ms-copy-source': true, 'x-ms-requires-sync': 'true' }),
  unbuilt('Incremental Copy Blob', `PUT ${BLOB}`, { comp: 'incrementalcopy' }),
  unbuilt('Set Blob Tier', `PUT ${BLOB}`, { comp: 'tier' }),
  unbuilt('Query Blob Contents', `POST ${BLOB}`, { comp: 'query' }),
  unbuilt('Get Blob Tags', `GET ${BLOB}`, { comp: 'tags' }),
  unbuilt('Set Blob Tags', `PUT ${BLOB}`, { comp: 'tags' }),

  ...['BlockBlob', 'AppendBlob', 'PageBlob'].flatMap((type) => {
    const headers = { 'x-ms-blob-type': type, 'x-ms-copy-source': true } as const;
    return [
      unbuilt<Storage>('Put Blob From URL', `PUT ${BLOB}`, {}, headers),
      unbuilt<Storage>('Put Blob From URL', `PUT ${BLOB}`, {}, { ...headers, 'x-ms-requires-sync': 'true' }),
    ];
  }),
  unbuilt('Put Block From URL', `PUT ${BLOB}`, { comp: 'block' }, { 'x-ms-copy-source': true }),

  unbuilt('Put Blob (append blob)', `PUT ${BLOB}`, {}, { 'x-ms-blob-type': 'AppendBlob' }),
  unbuilt('Append Block', `PUT ${BLOB}`, { comp: 'appendblock' }),
  unbuilt('Append Block From URL', `PUT ${BLOB}`, { comp: 'appendblock' }, { 'x-ms-copy-source': true }),
  unbuilt('Append Blob Seal', `PUT ${BLOB}`, { comp: 'seal' }),

  unbuilt('Put Blob (page blob)', `PUT ${BLOB}`, {}, { 'x-ms-blob-type': 'PageBlob' }),
  unbuilt('Put Page', `PUT ${BLOB}`, { comp: 'page' }),
  unbuilt('Put Page From URL', `PUT ${BLOB}`, { comp: 'page' }, { 'x-ms-copy-source': true }),
  unbuilt('Get Page Ranges', `GET ${BLOB}`, { comp: 'pagelist' }),
];
