/** The operations on blob index tags. */
import { findBlobs } from '../../services/blob/find-blobs.ts';
import { getBlobTags, setBlobTags } from '../../services/blob/tags.ts';
import type { Storage } from '../../services/common/storage.ts';
import { prepend, streamAsProduced } from '../http/streamed.ts';
import { type Operation, operationOn, type Reader, type Route } from '../operation.ts';
import { integerQuery, invalidXml, leaseId, pathPart, query, xmlBody } from '../params.ts';
import { estimateListBytes, streamedXmlReply, xmlReply } from '../reply.ts';
import { accountUrl } from '../request.ts';
import { blobListEnd } from './list-xml.ts';
import { rejectSnapshot, requiredQuery, snapshot, tagConditions, VERSION_PARAMS } from './params.ts';
import { foundElements, foundListStart, parseTagsXml, tagsElement } from './tags-xml.ts';

const operation = operationOn<Storage>();
const container = pathPart(0);
const blob = pathPart(1);

const FIND_SCOPES: readonly {
  name: string;
  route: Route;
  query: Record<string, string>;
  input: { container?: Reader<string> };
}[] = [
  { name: 'Find Blobs by Tags', route: 'GET /', query: { comp: 'blobs' }, input: {} },
  {
    name: 'Find Blobs by Tags in Container',
    route: 'GET /{container}',
    query: { restype: 'container', comp: 'blobs' },
    input: { container },
  },
];

export const tagOperations: readonly Operation<Storage>[] = [
  operation({
    name: 'Get Blob Tags',
    route: 'GET /{container}/{blob}',
    query: { comp: 'tags' },
    permission: 'tags',
    anonymous: false,
    test: 'test/end-to-end/blob-tags.test.ts',
    unsupported: VERSION_PARAMS,
    input: { container, blob, snapshot, conditions: tagConditions, leaseId },
    run: getBlobTags,
    reply: (found) => xmlReply(200, tagsElement(found)),
  }),
  operation({
    name: 'Set Blob Tags',
    route: 'PUT /{container}/{blob}',
    query: { comp: 'tags' },
    permission: 'tags',
    test: 'test/end-to-end/blob-tags.test.ts',
    unsupported: VERSION_PARAMS,
    input: { container, blob, base: rejectSnapshot, conditions: tagConditions, leaseId, document: xmlBody('Tags') },
    run: (storage, { document, ...input }) => {
      if (!document) throw invalidXml(0, 0, 'There is no root element.');
      return setBlobTags(storage, { ...input, tags: parseTagsXml(document) });
    },
    reply: () => ({ status: 204 }),
  }),
  ...FIND_SCOPES.map(({ name, route, query: routeQuery, input }) =>
    operation({
      name,
      route,
      query: routeQuery,
      permission: 'filter',
      test: 'test/end-to-end/find-blobs.test.ts',
      input: {
        ...input,
        where: requiredQuery('where'),
        marker: query('marker'),
        resultsMax: integerQuery('maxresults', { min: 1, max: 2 ** 31 - 1 }),
      },
      replyBytes: ({ resultsMax }) => estimateListBytes({ resultsMax, include: [] }),
      run: async (storage, found) => {
        const pieces = await streamAsProduced(async (append) => {
          append(blobListEnd(await findBlobs(storage, found, (blobs) => append(foundElements(blobs)))));
        });
        return { input: found, pieces };
      },
      reply: ({ input: found, pieces }, request) =>
        streamedXmlReply(200, prepend(foundListStart(accountUrl(request), found), pieces)),
    }),
  ),
];
