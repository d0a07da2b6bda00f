/** Operations on the security descriptors of a share: one row each. */
import type { Storage } from '../../services/common/storage.ts';
import type { Operation } from '../operation.ts';

export const permissionOperations: readonly Operation<Storage>[] = [];
