/** The File service on the wire: one row per operation, in the order of Microsoft's REST reference. */
import type { Storage } from '../../services/common/storage.ts';
import type { Operation } from '../operation.ts';
import { serviceOperations } from '../service-operations.ts';
import { fileCopyOperations } from './copy-operations.ts';
import { dataOperations } from './data-operations.ts';
import { directoryOperations } from './directory-operations.ts';
import { fileEntryOperations } from './file-operations.ts';
import { handleOperations } from './handle-operations.ts';
import { notImplementedOperations } from './not-implemented.ts';
import { withServiceRules } from './params.ts';
import { permissionOperations } from './permission-operations.ts';
import { listSharesRow, shareOperations } from './share-operations.ts';

const SHAPES = ['/', '/{share}', '/{share}/{path}'] as const;

export const fileOperations: readonly Operation<Storage>[] = [
  listSharesRow,
  ...serviceOperations('file', SHAPES),
  ...shareOperations,
  ...permissionOperations,
  ...directoryOperations,
  ...fileEntryOperations,
  ...dataOperations,
  ...fileCopyOperations,
  ...handleOperations,
  ...notImplementedOperations,
].map(withServiceRules);
