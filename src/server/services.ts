/** The services: each with its REST definition, and with the access policies of its containers. */
import { blobService } from '../rest/blob/service.ts';
import { fileService } from '../rest/file/service.ts';
import type { PipelineOptions } from '../rest/pipeline.ts';
import { queueService } from '../rest/queue/service.ts';
import { tableService } from '../rest/table/service.ts';
import { blobSources } from '../services/blob/blob-source.ts';
import { containerAccess } from '../services/blob/containers.ts';
import type { SourceReader, SourceService } from '../services/common/copy-sources.ts';
import type { ServiceName } from '../services/common/names.ts';
import type { Storage } from '../services/common/storage.ts';
import { shareAccess } from '../services/file/access.ts';
import { fileSources } from '../services/file/file-source.ts';
import { queueAccess } from '../services/queue/access.ts';
import { tableAccess } from '../services/table/access.ts';

export const serviceDefinitions: Readonly<
  Record<ServiceName, Pick<PipelineOptions<Storage>, 'definition' | 'access'>>
> = {
  blob: { definition: blobService, access: containerAccess },
  queue: { definition: queueService, access: queueAccess },
  table: { definition: tableService, access: tableAccess },
  file: { definition: fileService, access: shareAccess },
};

/** How each service lets others copy from it. */
export const localSources: Readonly<Record<SourceService, SourceReader>> = { blob: blobSources, file: fileSources };
