/** The Queue service, as the request pipeline needs it. */
import type { Storage } from '../../services/common/storage.ts';
import { errorReply } from '../reply.ts';
import type { ServiceDefinition } from '../service.ts';
import { queueOperations } from './operations.ts';
import { parseQueuePath } from './params.ts';

export const queueService: ServiceDefinition<Storage> = {
  service: 'queue',
  serverName: 'Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0',
  table: queueOperations,
  parsePath: parseQueuePath,
  errorReply,
};
