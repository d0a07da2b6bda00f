import type { Storage } from '../../services/common/storage.ts';
import type { Front } from '../service.ts';
import { tablePath } from './address.ts';
import { tableErrorReply } from './errors.ts';
import { methodOf } from './method.ts';
import { tableOperations } from './operations.ts';

export const tableFront: Front<Storage> = {
  service: 'table',
  serverName: 'Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0',
  table: tableOperations,
  pathOf: tablePath,
  errorReply: tableErrorReply,
  methodOf,
};
