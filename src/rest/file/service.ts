/** The File service, as the request pipeline needs it. */
import type { Storage } from '../../services/common/storage.ts';
import { errorReply } from '../reply.ts';
import type { ServiceDefinition } from '../service.ts';
import { fileOperations } from './operations.ts';
import { parseFilePath } from './params.ts';

export const fileService: ServiceDefinition<Storage> = {
  service: 'file',
  serverName: 'Windows-Azure-File/1.0 Microsoft-HTTPAPI/2.0',
  table: fileOperations,
  parsePath: parseFilePath,
  errorReply,
};
