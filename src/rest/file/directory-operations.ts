/** Operations on directories: one row each. */
import type { Storage } from '../../services/common/storage.ts';
import type { Operation } from '../operation.ts';

export const directoryOperations: readonly Operation<Storage>[] = [];
