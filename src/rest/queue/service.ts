import type { Storage } from '../../services/common/storage.ts';
import { errorReply } from '../reply.ts';
import type { Front } from '../service.ts';
import { queuePath } from './address.ts';
import { queueOperations } from './operations.ts';

export const queueFront: Front<Storage> = {
  service: 'queue',
  serverName: 'Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0',
  table: queueOperations,
  pathOf: queuePath,
  errorReply,
};
