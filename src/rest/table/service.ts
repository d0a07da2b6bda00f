import type { Storage } from '../../services/common/storage.ts';
import type { ServiceDefinition } from '../service.ts';
import { parseTablePath } from './address.ts';
import { tableErrorReply } from './errors.ts';
import { effectiveMethod } from './method-override.ts';
import { tableOperations } from './operations.ts';

export const tableService: ServiceDefinition<Storage> = {
  service: 'table',
  serverName: 'Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0',
  table: tableOperations,
  parsePath: parseTablePath,
  errorReply: tableErrorReply,
  effectiveMethod,
};
