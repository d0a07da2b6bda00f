/** The operations on blob index tags. */
import { getBlobTags, setBlobTags } from '../../services/blob/tags.ts';
import type { Storage } from '../../services/common/storage.ts';
import { type Operation, operationOn } from '../operation.ts';
import { invalidXml, leaseId, pathPart, xmlBody } from '../params.ts';
import { xmlReply } from '../reply.ts';
import { rejectConditions } from './params.ts';
import { parseTagsXml, tagsElement } from './tags-xml.ts';

const operation = operationOn<Storage>();
const container = pathPart(0);
const blob = pathPart(1);

const UNSUPPORTED = ['?snapshot', '?versionid', 'x-ms-if-tags'];

export const tagOperations: readonly Operation<Storage>[] = [
  operation({
    name: 'Get Blob Tags',
    route: 'GET /{container}/{blob}',
    query: { comp: 'tags' },
    permission: 'tags',
    anonymous: false,
    test: 'test/end-to-end/blob-tags.test.ts',
    unsupported: UNSUPPORTED,
    input: { container, blob, conditions: rejectConditions, leaseId },
    run: getBlobTags,
    reply: (found) => xmlReply(200, tagsElement(found)),
  }),
  operation({
    name: 'Set Blob Tags',
    route: 'PUT /{container}/{blob}',
    query: { comp: 'tags' },
    permission: 'tags',
    test: 'test/end-to-end/blob-tags.test.ts',
    unsupported: UNSUPPORTED,
    input: { container, blob, conditions: rejectConditions, leaseId, document: xmlBody('Tags') },
    run: (storage, { document, ...input }) => {
      if (!document) throw invalidXml(0, 0, 'There is no root element.');
      return setBlobTags(storage, { ...input, tags: parseTagsXml(document) });
    },
    reply: () => ({ status: 204 }),
  }),
];
