import { describe, expect, it } from 'vitest';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import type { Transaction } from '../../partition/partition.ts';
import { formatSddl, parseSddl } from '../../rules/file/sddl.ts';
import { decodeDescriptor, type SecurityDescriptor } from '../../rules/file/security-descriptor.ts';
import { checkPermission, checkPermissionOf } from '../maintenance/check-permissions.ts';
import {
  type AskedPermission,
  isBuiltInPermission,
  type PermissionTarget,
  ROOT_PERMISSION,
  readPermission,
  resolvePermission,
} from './permissions.ts';
import { permissionKey, permissionsIn } from './rows.ts';
import { createPermission, getPermission } from './share-permissions.ts';

const BELOW: PermissionTarget = { kind: 'file', semantics: 'new', parent: ROOT_PERMISSION };
const sddl = (text: string): SecurityDescriptor => parseSddl(text)!;

async function openPermissions() {
  const world = await openShare();
  const { share } = world;
  return {
    ...world,
    resolve: (asked: AskedPermission, target: Partial<PermissionTarget> = {}) =>
      world.act((tx: Transaction) => resolvePermission(tx, share, asked, { ...BELOW, ...target })),
    text: (hash: string) =>
      world.partition.read(async (at) => formatSddl(decodeDescriptor(await readPermission(at, share, hash))!)),
    rows: () => world.partition.read((at) => at.scan(permissionsIn(share), { limit: 10 })),
  };
}

describe('The permission of a new file', () => {
  it('is inherited, without any row where nobody named one', async () => {
    const { resolve, text, rows } = await openPermissions();
    const directory = await resolve('inherit', { kind: 'directory' });
    const file = await resolve('inherit', { parent: directory });
    expect(await resolve('inherit', { kind: 'directory', parent: directory })).toBe(directory);
    expect(await resolve('inherit')).toBe(file);
    expect(await text(file)).toMatch(/^O:SYG:SYD:AI\(A;ID;FA;;;BA\)/);
    expect(isBuiltInPermission(file) && isBuiltInPermission(directory)).toBe(true);
    expect(await rows()).toEqual([]);
  });

  it('is inherited from a directory that has its own', async () => {
    const { resolve, text, rows } = await openPermissions();
    const own = sddl('O:BAG:BUD:P(A;OICI;FR;;;WD)');
    const parent = await resolve({ descriptor: own }, { kind: 'directory', semantics: 'restore' });
    expect(await text(await resolve('inherit', { parent }))).toBe('O:SYG:SYD:AI(A;ID;FR;;;WD)');
    expect(await resolve('inherit', { parent })).toBe(await resolve('inherit', { parent }));
    expect(await rows()).toHaveLength(2);
  });

  it('adds what it inherits to what the request names, and as a restored one does not', async () => {
    const { resolve, text } = await openPermissions();
    const descriptor = sddl('O:BAG:BUD:AI(A;;FR;;;WD)');
    expect(await text(await resolve({ descriptor }))).toMatch(/^O:BAG:BUD:AI\(A;;FR;;;WD\)\(A;ID;FA;;;BA\)/);
    const restored = await resolve({ descriptor }, { semantics: 'restore' });
    expect(await text(restored)).toBe('O:BAG:BUD:AI(A;;FR;;;WD)S:NO_ACCESS_CONTROL');
    expect(await resolve({ key: restored }, { semantics: 'restore' })).toBe(restored);
    expect(await text(await resolve({ key: restored }))).toMatch(
      /\(A;;FR;;;WD\)\(A;ID;FA;;;BA\).*S:NO_ACCESS_CONTROL$/,
    );
  });

  it('that was inherited gets another key when a client names it', async () => {
    const { resolve, text } = await openPermissions();
    const inherited = await resolve('inherit', { kind: 'directory' });
    const named = await resolve({ key: inherited }, { kind: 'directory', semantics: 'restore', current: inherited });
    expect(named).not.toBe(inherited);
    expect(await text(named)).toBe(`${await text(inherited)}S:NO_ACCESS_CONTROL`);
  });

  it('stays, or is that of the source of a copy', async () => {
    const { resolve, text, partition, share } = await openPermissions();
    const current = await resolve({ descriptor: sddl('O:BAG:BUD:P') }, { semantics: 'restore' });
    expect(await resolve('preserve', { current })).toBe(current);
    const source = await partition.read((at) => readPermission(at, share, current));
    expect(await text(await resolve('source', { source }))).toBe('O:BAG:BUD:PS:NO_ACCESS_CONTROL');
    // A blob has none.
    expect(await resolve('source')).toBe(await resolve('inherit'));
  });

  it('is refused if the share does not know its key, or the lists become too long', async () => {
    const { resolve } = await openPermissions();
    await expect(resolve({ key: '1*1' })).rejects.toMatchObject({ code: 'FileInvalidPermissionKey' });
    const descriptor = sddl(`O:BAG:BUD:${'(A;;FA;;;SY)'.repeat(3_276)}`);
    await expect(resolve({ descriptor })).rejects.toMatchObject({ code: 'FileInvalidPermission' });
  });
});

describe('Permissions of a share', () => {
  it('are stored once', async () => {
    const { storage, rows } = await openPermissions();
    const permission = { text: 'O:BAG:BUD:', format: 'sddl' } as const;
    const keys = await Promise.all([1, 2, 3].map(() => createPermission(storage, { share: SHARE, permission })));
    expect(new Set(keys).size).toBe(1);
    expect(await rows()).toHaveLength(1);
    expect(await getPermission(storage, { share: SHARE, key: keys[0]!, format: 'sddl' })).toBe(
      'O:BAG:BUD:S:NO_ACCESS_CONTROL',
    );
  });

  it('are verified by the check', async () => {
    const { resolve, rows, partition, share, act } = await openPermissions();
    const permission = await resolve({ descriptor: sddl('O:BAG:BUD:P') }, { semantics: 'restore' });
    const checkUse = (hash: string) => partition.read((at) => checkPermissionOf(at, share, { permission: hash }));
    const [row] = await rows();
    checkPermission(row!);
    await checkUse(permission);
    await checkUse(ROOT_PERMISSION);
    expect(() => checkPermission({ ...row!, value: Buffer.concat([row!.value, Buffer.alloc(4)]) })).toThrow(
      /another hash/,
    );
    await act((tx: Transaction) => tx.remove(permissionKey(share, permission)));
    await expect(checkUse(permission)).rejects.toThrow(/is missing/);
  });
});
