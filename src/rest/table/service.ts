/** The Table service, as the request pipeline needs it. */
import type { Storage } from '../../services/common/storage.ts';
import type { ServiceDefinition } from '../service.ts';
import { tableErrorReply } from './errors.ts';
import { tableOperations } from './operations.ts';
import { effectiveMethod, parseTablePath } from './params.ts';

export const tableService: ServiceDefinition<Storage> = {
  service: 'table',
  serverName: 'Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0',
  table: tableOperations,
  parsePath: parseTablePath,
  errorReply: tableErrorReply,
  effectiveMethod,
};
