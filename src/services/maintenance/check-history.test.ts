import { describe, expect, it } from 'vitest';
import { inPieces } from '../../../test/support/content-store.ts';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import { createChunkChecker } from '../../content/chunk-check.ts';
import { contentKey, decodeContent, encodeContent, parseId } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import { createDirectory } from '../file/directories.ts';
import { createFile, deleteFile, setFileMetadata } from '../file/files.ts';
import { heldGenerationKey } from '../file/generations.ts';
import { nodeAt } from '../file/history.ts';
import { encodeEntry, encodeNode, type File, recordFrom } from '../file/node-rows.ts';
import { putRange } from '../file/ranges.ts';
import { renameNode } from '../file/rename.ts';
import { historyKey, permissionKey, ROOT, type Share, snapshotKey } from '../file/rows.ts';
import { createPermission } from '../file/share-permissions.ts';
import { snapshotShare } from '../file/share-snapshots.ts';
import { deleteShare } from '../file/shares.ts';
import { sweepShare } from '../file/sweep-share.ts';
import { check } from './check.ts';

const share = SHARE;
const at = (path: string) => ({ share, path, leaseId: undefined, metadata: [], smb: {} });

/** The file `d/f` with bytes and a file `gone`, a snapshot, and then another name and other metadata for `f`, and no `gone`. */
async function openTree() {
  const world = await openShare();
  const { storage, partition, extents } = world;
  const directory = await createDirectory(storage, at('d'));
  const smb = { permission: { key: await ownPermission(world) } };
  const file = await createFile(storage, { ...at('d/f'), smb, length: 9_000, content: {} });
  await createFile(storage, { ...at('gone'), length: 0, content: {} });
  await write(world, 'd/f', 'x');
  const { snapshot } = await snapshotShare(storage, { share, metadata: [] });
  await write(world, 'd/f', 'y');
  await setFileMetadata(storage, { ...at('d/f'), metadata: [['new', 'yes']] });
  await renameNode(storage, 'file', {
    ...{ ...at('d/g'), source: { path: 'd/f', keepsTrailingDots: undefined }, replaces: false },
    ...{ ignoresReadOnly: true, sourceLeaseId: undefined, destinationLeaseId: undefined },
  });
  await deleteFile(storage, at('gone'));
  const find = async () => (await check(partition, createChunkChecker(partition, extents))).findings;
  return { ...world, directory, file, second: snapshot, find };
}

type World = Awaited<ReturnType<typeof openShare>>;

async function ownPermission({ storage }: World): Promise<string> {
  return createPermission(storage, { share, permission: { text: 'O:SYG:SYD:(A;;FA;;;SY)', format: 'sddl' } });
}

async function write({ storage }: World, path: string, text: string): Promise<void> {
  const body = { length: 9_000, expected: {}, bytes: () => inPieces(Buffer.alloc(9_000, text), 9_000) };
  const range = { range: 'bytes=0-8999', lastWrite: undefined, keepsTimes: false };
  await putRange(storage, { ...at(path), ...range, body });
}

interface Damage {
  readonly what: string;
  readonly act: (tx: Transaction, tree: Awaited<ReturnType<typeof openTree>>, share: Share) => unknown;
  readonly finding: RegExp;
}

const damages: readonly Damage[] = [
  {
    what: 'a kept node that is lost',
    act: (tx, { file }, found) => tx.remove(historyKey(found, ['j', file.id], 2)),
    finding: /"h",.*"d",.*\]: in the snapshot of generation 1 it leads to no node/,
  },
  {
    what: 'a kept entry that is lost',
    act: (tx, { directory }, found) => tx.remove(historyKey(found, ['d', directory.id, 'F'], 2)),
    finding: /"h",.*"j",.*\]: in the snapshot of generation 1 no entry leads to it/,
  },
  {
    what: 'a kept entry that leads nowhere',
    act: (tx, { directory }, found) =>
      tx.put(
        historyKey(found, ['d', directory.id, 'ORPHAN'], 2),
        encodeEntry({ node: 99n, name: 'orphan', kind: 'file', born: 1 }),
      ),
    finding: /"ORPHAN","2"\]: in the snapshot of generation 1 it leads to no node/,
  },
  {
    what: 'a kept row that no snapshot sees',
    act: (tx, _, found) => {
      const entry = encodeEntry({ node: ROOT, name: 'late', kind: 'directory', born: 2 });
      tx.put(historyKey(found, ['d', ROOT, 'LATE'], 3), entry);
    },
    finding: /"LATE","3"\]: a kept row that no snapshot needs/,
  },
  {
    what: 'a kept node whose permission is gone',
    act: async (tx, { file }, found) => tx.remove(permissionKey(found, file.permission)),
    finding: /"h",.*"j",.*\]: .*permission/,
  },
  {
    what: 'a content that counts its kept users wrong',
    act: async (tx, tree, found) => {
      const node = await keptFile(tx, tree, found);
      const key = contentKey(found.account, parseId(node.contentId!));
      const content = decodeContent((await tx.get(key))!);
      tx.put(key, encodeContent({ ...content, refs: content.refs - 1 }));
    },
    finding: /"c",.*\]: it counts 1 users and has 2/,
  },
  {
    what: 'a kept node whose content is another',
    act: async (tx, tree, found) => {
      const record = { ...recordFrom(await keptFile(tx, tree, found)), contentId: '1-999' };
      tx.put(historyKey(found, ['j', tree.file.id], 2), encodeNode(record));
    },
    finding: /"h",.*\]: its content is missing/,
  },
  {
    what: 'a snapshot whose generation is not held',
    act: (tx, _, found) => tx.remove(heldGenerationKey(found, 1)),
    finding: /"S",.*\]: its generation 1 is not held/,
  },
  {
    what: 'a held generation that no snapshot has',
    act: (tx, _, found) => tx.put(heldGenerationKey(found, 7), encodeValue({})),
    finding: /"N",.*\]: a generation that no snapshot shows/,
  },
  {
    what: 'a snapshot that is gone, with its generation',
    act: (tx, { second }, found) => {
      tx.remove(snapshotKey(found, second));
      tx.remove(heldGenerationKey(found, 1));
    },
    finding: /"o",.*\]: an older page that nothing needs/,
  },
];

async function keptFile(tx: Transaction, { file }: { file: File }, found: Share): Promise<File> {
  return (await nodeAt(tx, found, file.id, 1)) as File;
}

describe('The check of a share with snapshots', () => {
  it('finds nothing in one that is sound', async () => {
    expect(await (await openTree()).find()).toEqual([]);
  });

  it('finds nothing in one that is being removed, after each slice', async () => {
    const tree = await openTree();
    const { storage, stop, act, find } = tree;
    await stop();
    const input = { share, leaseId: undefined, deleteSnapshots: 'include' } as const;
    await deleteShare({ ...storage, sweeper: { ...storage.sweeper, wake: () => {} } }, input);
    let slices = 0;
    for (let isGone = false; !isGone; slices++) {
      expect(await find()).toEqual([]);
      isGone = await act((tx) => sweepShare(tx, storage, tree.share.id));
    }
    expect(slices).toBeGreaterThan(3);
  });

  it.each(damages)('finds $what', async ({ act, finding }) => {
    const tree = await openTree();
    await tree.act((tx) => act(tx, tree, tree.share));
    expect(await tree.find()).toContainEqual(expect.stringMatching(finding));
  });
});
