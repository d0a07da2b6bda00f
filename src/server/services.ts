/** The services that there are, each with its front end and with what opens its containers to others than the owner. */

import { blobFront } from '../rest/blob/service.ts';
import type { AnsweringOptions } from '../rest/pipeline.ts';
import { queueFront } from '../rest/queue/service.ts';
import { tableFront } from '../rest/table/service.ts';
import { containerAccess } from '../services/blob/access.ts';
import type { ServiceName } from '../services/common/names.ts';
import type { Storage } from '../services/common/storage.ts';
import { queueAccess } from '../services/queue/access.ts';
import { tableAccess } from '../services/table/access.ts';

export const fronts: Readonly<Record<ServiceName, Pick<AnsweringOptions<Storage>, 'front' | 'access'>>> = {
  blob: { front: blobFront, access: containerAccess },
  queue: { front: queueFront, access: queueAccess },
  table: { front: tableFront, access: tableAccess },
};
