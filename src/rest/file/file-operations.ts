/** Operations on files, without their bytes: one row each. */
import type { Storage } from '../../services/common/storage.ts';
import type { Operation } from '../operation.ts';

export const fileEntryOperations: readonly Operation<Storage>[] = [];
