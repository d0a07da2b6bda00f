/** Operations on the bytes of files: ranges, leases and copies: one row each. */
import type { Storage } from '../../services/common/storage.ts';
import type { Operation } from '../operation.ts';

export const dataOperations: readonly Operation<Storage>[] = [];
