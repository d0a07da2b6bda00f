/** The Blob service, as the request pipeline needs it. */
import type { Storage } from '../../services/common/storage.ts';
import { errorReply } from '../reply.ts';
import type { ServiceDefinition } from '../service.ts';
import { blobOperations } from './operations.ts';
import { parseBlobPath } from './params.ts';

export const blobService: ServiceDefinition<Storage> = {
  service: 'blob',
  serverName: 'Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0',
  table: blobOperations,
  parsePath: parseBlobPath,
  errorReply,
};
