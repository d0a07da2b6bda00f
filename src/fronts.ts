/** The services that there are, each with its front end and with what opens its containers to others than the owner. */
import type { AnsweringOptions } from './rest/answering.ts';
import { blobFront } from './rest/blob/front.ts';
import { queueFront } from './rest/queue/front.ts';
import { tableFront } from './rest/table/front.ts';
import { containerAccess } from './services/blob/access.ts';
import type { ServiceName } from './services/names.ts';
import { queueAccess } from './services/queue/access.ts';
import type { Storage } from './services/storage.ts';
import { tableAccess } from './services/table/access.ts';

export const fronts: Readonly<Record<ServiceName, Pick<AnsweringOptions<Storage>, 'front' | 'access'>>> = {
  blob: { front: blobFront, access: containerAccess },
  queue: { front: queueFront, access: queueAccess },
  table: { front: tableFront, access: tableAccess },
};
