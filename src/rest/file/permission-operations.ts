/** Operations on the security descriptors of a share: one row each. */
import type { PermissionFormat } from '../../rules/file/permission.ts';
import type { Storage } from '../../services/common/storage.ts';
import { fail } from '../../services/file/errors.ts';
import { createPermission, getPermission, type SentPermission } from '../../services/file/share-permissions.ts';
import { type BodyReader, type Operation, operationOn } from '../operation.ts';
import { bodyTooLarge, checkBodyHashes, expectedHashes, pathPart } from '../params.ts';
import { permissionFormatHeader, permissionKeyHeader } from './smb-headers.ts';

const operation = operationOn<Storage>();
const share = pathPart(0);
const query = { restype: 'share', comp: 'filepermission' } as const;
const test = 'test/end-to-end/file-permissions.test.ts';
/** The longest list has 64 KiB, and takes about three times as much in SDDL with escapes. */
const BODY_BYTES_MAX = 256 << 10;

/** { "permission": "O:...", "format": "sddl" } */
const permissionBody: BodyReader<SentPermission> = {
  kind: 'body',
  bytesMax: BODY_BYTES_MAX,
  tooLarge: () => bodyTooLarge(BODY_BYTES_MAX),
  check: (request) => {
    expectedHashes(request);
  },
  read: (bytes, request) => {
    checkBodyHashes(bytes, request);
    return readPermission(parseJson(bytes));
  },
};

export const permissionOperations: readonly Operation<Storage>[] = [
  operation({
    name: 'Create Permission',
    route: 'PUT /{share}',
    query,
    permission: { all: ['write', 'delete'] },
    test,
    input: { share, permission: permissionBody },
    run: createPermission,
    reply: (key) => ({ status: 201, headers: { 'x-ms-file-permission-key': key } }),
  }),
  operation({
    name: 'Get Permission',
    route: 'GET|HEAD /{share}',
    query,
    permission: 'read',
    test,
    input: { share, key: permissionKeyHeader, format: permissionFormatHeader },
    run: async (storage, { format, ...input }) => ({
      permission: await getPermission(storage, { ...input, format: format ?? 'sddl' }),
      format,
    }),
    reply: ({ permission, format }) => ({
      status: 200,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ permission, format }),
    }),
  }),
];

function readPermission(json: unknown): SentPermission {
  const { permission: text, format = 'sddl' } = Object(json) as Record<string, unknown>;
  const lower = typeof format === 'string' ? format.toLowerCase() : undefined;
  if (typeof text !== 'string' || (lower !== 'sddl' && lower !== 'binary')) throw fail('InvalidInput');
  return { text, format: lower satisfies PermissionFormat };
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw fail('InvalidInput');
  }
}
