/** List Handles and Force Close Handles: a row for the root directory, whose path is that of its share, and a row for all below. */
import { formatRfc1123 } from '../../base/time.ts';
import { escapeXml } from '../../base/xml.ts';
import type { Storage } from '../../services/common/storage.ts';
import { forceCloseHandles, type ListedHandle, listHandles } from '../../services/file/handle-lists.ts';
import { accessNames } from '../../services/file/opens.ts';
import { type Operation, operationOn, type Request } from '../operation.ts';
import { booleanHeader, integerQuery, noContent, query, requiredHeader } from '../params.ts';
import { estimateListBytes, xmlReply } from '../reply.ts';
import { element, parameterElements } from '../xml/list-elements.ts';
import { isBefore } from './file-reply.ts';
import { readPlace } from './params.ts';

const operation = operationOn<Storage>();
const test = 'test/end-to-end/file-handles.test.ts';
const ACCESS_RIGHTS_SINCE = '2023-01-03';
const CLIENT_NAMES_SINCE = '2024-02-04';

const handles = { ...readPlace, marker: query('marker'), recursive: booleanHeader('x-ms-recursive') };

const rowsAt = (shape: '/{share}' | '/{share}/{path}'): readonly Operation<Storage>[] => [
  operation({
    name: 'List Handles',
    route: `GET ${shape}`,
    query: { comp: 'listhandles' },
    permission: 'owner',
    smbAccess: 'none',
    test,
    input: { ...handles, resultsMax: integerQuery('maxresults', { min: 1, max: 2 ** 31 - 1 }) },
    replyBytes: ({ resultsMax }) => estimateListBytes({ resultsMax, include: [] }),
    run: async (storage, { recursive = false, ...input }) => {
      const { marker, resultsMax } = input;
      return { marker, resultsMax, ...(await listHandles(storage, { ...input, isRecursive: recursive })) };
    },
    reply: ({ handles: found, nextMarker, marker, resultsMax }, { version }) =>
      xmlReply(
        200,
        `<EnumerationResults>${parameterElements({ marker, resultsMax })}<Entries>${found.map((handle) => handleElement(handle, version)).join('')}</Entries>` +
          `${element('NextMarker', nextMarker)}</EnumerationResults>`,
      ),
  }),
  operation({
    name: 'Force Close Handles',
    route: `PUT ${shape}`,
    query: { comp: 'forceclosehandles' },
    permission: 'owner',
    smbAccess: 'none',
    test,
    input: { ...handles, handleId: requiredHeader('x-ms-handle-id'), body: noContent },
    run: (storage, { recursive = false, ...input }) => forceCloseHandles(storage, { ...input, isRecursive: recursive }),
    reply: ({ closed, failed, nextMarker }) => ({
      status: 200,
      headers: {
        'x-ms-number-of-handles-closed': closed,
        'x-ms-number-of-handles-failed': failed,
        'x-ms-marker': nextMarker || undefined,
      },
    }),
  }),
];

export const handleOperations: readonly Operation<Storage>[] = [...rowsAt('/{share}'), ...rowsAt('/{share}/{path}')];

function handleElement(handle: ListedHandle, version: Request['version']): string {
  const { id, path, node, parent, session, ip, name, opened, access } = handle;
  const rights = accessNames(access).map((right) => `<AccessRight>${right}</AccessRight>`);
  return (
    `<Handle><HandleId>${id}</HandleId>${element('Path', path)}<FileId>${node}</FileId><ParentId>${parent}</ParentId>` +
    `<SessionId>${escapeXml(session)}</SessionId><ClientIp>${escapeXml(ip)}</ClientIp>` +
    (isBefore(version, CLIENT_NAMES_SINCE) ? '' : element('ClientName', name)) +
    `<OpenTime>${formatRfc1123(opened)}</OpenTime>` +
    (isBefore(version, ACCESS_RIGHTS_SINCE) ? '' : `<AccessRightList>${rights.join('')}</AccessRightList>`) +
    '</Handle>'
  );
}
