import type { Storage } from '../../services/common/storage.ts';
import { errorReply } from '../reply.ts';
import type { Front } from '../service.ts';
import { blobPath } from './address.ts';
import { blobOperations } from './operations.ts';

export const blobFront: Front<Storage> = {
  service: 'blob',
  serverName: 'Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0',
  table: blobOperations,
  pathOf: blobPath,
  errorReply,
};
