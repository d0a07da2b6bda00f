import { describe, expect, it } from 'vitest';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import { createChunkChecker } from '../../content/chunk-check.ts';
import { emptyPage } from '../../content/ranges/map-page.ts';
import { encodeMapPage } from '../../content/ranges/map-page-codec.ts';
import { mapPageKey } from '../../content/ranges/map-rows.ts';
import { type ContentId, contentKey, parseId } from '../../content/rows.ts';
import type { Row, Transaction } from '../../partition/partition.ts';
import { startCopy } from '../../rules/copy-state.ts';
import { encodeRunningCopy, type RunningCopy } from '../common/running-copies.ts';
import { createDirectory } from '../file/directories.ts';
import { createFile } from '../file/files.ts';
import { decodeEntry, decodeNode, encodeEntry, encodeNode, type File, recordFrom } from '../file/node-rows.ts';
import { putRange } from '../file/ranges.ts';
import { renameNode } from '../file/rename.ts';
import { entryKey, nodeKey, ROOT, runningCopyKey, type Share, timesKey, usageKey } from '../file/rows.ts';
import { deleteShare } from '../file/shares.ts';
import { check } from './check.ts';

const share = SHARE;
const at = (path: string) => ({ share, path, leaseId: undefined, metadata: [], smb: {} });

/** Directories `d` and `d/e`, and the file `d/f` with bytes. */
async function openTree() {
  const world = await openShare();
  const { storage, partition, store } = world;
  const directory = await createDirectory(storage, at('d'));
  const inner = await createDirectory(storage, at('d/e'));
  await createFile(storage, { ...at('d/f'), length: 3000, content: {} });
  const body = { whole: Buffer.alloc(3000, 'x'), length: 3000, expected: {} };
  const range = { range: 'bytes=0-2999', lastWrite: undefined, keepsTimes: false, wantsMd5: false };
  await putRange(storage, { ...at('d/f'), ...range, body } as never);
  const find = async () => (await check(partition, createChunkChecker(partition, world.extents))).findings;
  const entry = (parent: bigint, folded: string) => entryKey(world.share, parent, folded);
  const row = async (key: ReturnType<typeof entry>): Promise<Row> =>
    (await partition.read((snapshot) => snapshot.get(key)))!;
  const fileEntry = decodeEntry(await row(entry(directory.id, 'F')));
  const file = decodeNode(fileEntry.node, await row(nodeKey(world.share, fileEntry.node))) as File;
  return { ...world, store, directory, inner, file, fileEntry, find, entry };
}

type Tree = Awaited<ReturnType<typeof openTree>>;
interface Damage {
  readonly what: string;
  readonly act: (tx: Transaction, tree: Tree, share: Share) => unknown;
  readonly findings: readonly RegExp[];
}

const copyOf = (content: ContentId): RunningCopy => ({
  ...{ id: 'one', source: { url: 'http://elsewhere/', etag: 'x', modified: undefined }, content, owner: content.epoch },
  ...{ started: 1n, md5: undefined },
});

const damages: readonly Damage[] = [
  {
    what: 'bytes in use that are miscounted',
    act: (tx, _, found) => tx.add(usageKey(found, 0), -1n),
    findings: [/share .*: it counts 2999 bytes in use and its files have 3000/],
  },
  {
    what: 'an entry that is gone',
    act: (tx, { entry, directory }) => tx.remove(entry(directory.id, 'F')),
    findings: [/"j",.*\]: no entry leads to it/],
  },
  {
    what: 'a node that is gone',
    act: (tx, { file }, found) => tx.remove(nodeKey(found, file.id)),
    findings: [
      /"c",.*\]: content that no blob has/,
      /"d",.*\]: it leads to node \d+, which does not exist/,
      /share .*: it counts 3000 bytes in use and its files have 0/,
    ],
  },
  {
    what: 'an entry under another name',
    act: (tx, { entry, directory, fileEntry }) => {
      tx.put(entry(directory.id, 'F'), encodeEntry({ ...fileEntry, name: 'other' }));
    },
    findings: [/"d",.*\]: its name is other/],
  },
  {
    what: 'a second entry of a node',
    act: (tx, { entry, fileEntry }) => tx.put(entry(ROOT, 'F'), encodeEntry(fileEntry)),
    findings: [/"d",.*\]: node \d+ has another name, or is elsewhere/],
  },
  {
    what: 'an entry of another kind',
    act: (tx, { entry, directory, fileEntry }) => {
      tx.put(entry(directory.id, 'F'), encodeEntry({ ...fileEntry, kind: 'directory' }));
    },
    findings: [/"d",.*\]: it leads to a file, not a directory/],
  },
  {
    what: 'two directories below each other',
    act: (tx, { entry, directory, inner }, found) => {
      tx.remove(entry(ROOT, 'D'));
      tx.put(nodeKey(found, directory.id), encodeNode({ ...recordFrom(directory), parent: inner.id }));
      tx.put(
        entry(inner.id, 'D'),
        encodeEntry({ node: directory.id, name: 'd', kind: 'directory', born: directory.born }),
      );
    },
    findings: [/^share \d+ of seven: directory \d+ is below itself/],
  },
  {
    what: 'a share without a root',
    act: (tx, _, found) => tx.remove(nodeKey(found, ROOT)),
    findings: [/"d",.*\]: it is in no directory/, /"z",.*\]: times of no directory/, /: it has no root/],
  },
  {
    what: 'times of a directory that is gone',
    act: (tx, _, found) => tx.max(timesKey(found, 5n), 1n),
    findings: [/"z",.*\]: times of no directory/],
  },
  {
    what: 'a permission that the share does not have',
    act: (tx, { inner }, found) => {
      tx.put(nodeKey(found, inner.id), encodeNode({ ...recordFrom(inner), permission: '1*2' }));
    },
    findings: [/"j",.*\]: its permission 1\*2 is missing/],
  },
  {
    what: 'a file that is shorter than its bytes',
    act: (tx, { file }, found) => tx.put(nodeKey(found, file.id), encodeNode({ ...recordFrom(file), length: 2999 })),
    findings: [
      /"j",.*\]: its content has 3000 bytes, not 2999/,
      /share .*: it counts 3000 bytes in use and its files have 2999/,
    ],
  },
  {
    what: 'a file whose content is gone',
    act: (tx, { file }, found) => tx.remove(contentKey(found.account, parseId(file.contentId!))),
    findings: [/"j",.*\]: its content is missing/],
  },
  {
    what: 'a content with bytes in its row and in a map page',
    act: (tx, { file }, found) => {
      const page = encodeMapPage({ ...emptyPage(1n, 1, 0), segments: [{ from: 0, to: 1, born: 1, at: 0 }] });
      tx.put(mapPageKey(found.account, parseId(file.contentId!), 0), page);
    },
    findings: [/"M",.*\]: the bytes of its content are in the content itself/],
  },
  {
    what: 'a copy that its file does not know',
    act: (tx, { file, store }, found) =>
      tx.put(runningCopyKey(found, file.id, SHARE), encodeRunningCopy(copyOf(store.newId()))),
    findings: [/"R",.*\]: a copy that its file does not know/],
  },
  {
    what: 'a pending copy that does not run',
    act: (tx, { inner, share: found }) => {
      const copy = startCopy({ id: 'one', source: 'http://elsewhere/', bytes: 0 });
      const place = { parent: inner.id, name: 'g', born: 1, kind: 'file', length: 0, content: {}, copy } as const;
      const { attributes, times, permission } = inner;
      tx.put(
        nodeKey(found, 7n),
        encodeNode({ ...place, attributes: attributes & ~0x10, times, permission, metadata: {} }),
      );
      tx.put(entryKey(found, inner.id, 'G'), encodeEntry({ node: 7n, name: 'g', kind: 'file', born: 1 }));
    },
    findings: [/"j",.*\]: a copy onto it is pending and does not run/],
  },
  {
    what: 'an entry of a share that does not exist',
    act: (tx, { fileEntry }, found) =>
      tx.put(entryKey({ ...found, id: 99n }, ROOT, 'F'), encodeEntry({ ...fileEntry, name: 'f' })),
    findings: [/"d","99".*\]: its share does not exist/],
  },
];

describe('The check of a share', () => {
  it('finds nothing in a tree that was written and renamed', async () => {
    const { storage, find } = await openTree();
    const source = { path: 'd/e', keepsTrailingDots: undefined };
    const options = {
      replaces: false,
      ignoresReadOnly: false,
      sourceLeaseId: undefined,
      destinationLeaseId: undefined,
    };
    await renameNode(storage, 'directory', { ...at('New'), source, ...options });
    expect(await find()).toEqual([]);
  });

  it.each(damages)('finds $what', async ({ act, findings }) => {
    const tree = await openTree();
    await tree.act((tx) => act(tx, tree, tree.share));
    const found = await tree.find();
    for (const [i, finding] of findings.entries()) expect(found[i]).toMatch(finding);
    expect(found).toHaveLength(findings.length);
  });

  it('finds nothing while a deleted share waits for the sweeper, and the sweeper leaves nothing of it', async () => {
    const tree = await openTree();
    const { storage, find, kinds } = tree;
    await tree.stop();
    await deleteShare(storage, { share } as never);
    expect(await find()).toEqual([]);
    const sweeper = tree.restart();
    sweeper.wake();
    await sweeper.idle();
    await sweeper.stop();
    expect(await find()).toEqual([]);
    expect(Object.keys(await kinds())).toEqual([]);
  });
});
