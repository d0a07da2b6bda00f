/** Operations of Azure's File service that this server does not have yet: each is refused by its name, never with a misleading 400 or 404. */
import type { Storage } from '../../services/common/storage.ts';
import { notImplementedOperation, type Operation } from '../operation.ts';

const PATH = '/{share}/{path}';

export const notImplementedOperations: readonly Operation<Storage>[] = [
  notImplementedOperation('Get User Delegation Key', 'POST /', { restype: 'service', comp: 'userdelegationkey' }),
  notImplementedOperation('Create Symbolic Link', `PUT ${PATH}`, { restype: 'symboliclink' }),
  notImplementedOperation('Get Symbolic Link', `GET ${PATH}`, { restype: 'symboliclink' }),
  notImplementedOperation('Create Hard Link', `PUT ${PATH}`, { restype: 'hardlink' }),
];
