/**
 * node fill-holdfast.mjs <folder> blobs|tagged|snapshots|messages|entities|files <container, queue, table or share> <number>: puts blobs or messages of 1 KiB, the entities
 * of table-loops.mjs, or empty files of the directory `filled`, into a data folder that no server uses, far faster than requests could, through the project's own row functions.
 * node fill-holdfast.mjs <folder> --deletions: prints how many blobs of deleted containers the sweeper has still to remove.
 */
import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { ticksFromUnix } from '../build/base/time.js';
import { deletionsIn } from '../build/content/rows.js';
import { crc64Base64 } from '../build/hashing/hasher.js';
import { prefixEnd } from '../build/partition/keys.js';
import { openLmdb } from '../build/partition/lmdb/engine.js';
import { openLmdbReadOnly } from '../build/partition/lmdb/read-only.js';
import { openPartition } from '../build/partition/transact.js';
import { encodeBytes } from '../build/partition/values.js';
import { readEntity } from '../build/rest/table/json/read-entity.js';
import { foldName } from '../build/rules/file/names.js';
import { rowsPath } from '../build/server/data-directory.js';
import { openAccounts } from '../build/services/accounts/accounts.js';
import { encodeBlobRecord } from '../build/services/blob/blob-record.js';
import { createContainer } from '../build/services/blob/containers.js';
import { recordKey } from '../build/services/blob/old-rows.js';
import { blobKey, blobKeyPrefix, inlineKey, readContainerId } from '../build/services/blob/rows.js';
import { updateTagIndex } from '../build/services/blob/tag-index.js';
import { decodeDeletion } from '../build/services/common/deletions.js';
import { createDirectory } from '../build/services/file/directories.js';
import { encodeEntry, encodeNode } from '../build/services/file/node-rows.js';
import { entryKey, nodeKey, readShare } from '../build/services/file/rows.js';
import { createShare } from '../build/services/file/shares.js';
import { countMessage, encodeMessage, messageKey } from '../build/services/queue/message-rows.js';
import { createQueue } from '../build/services/queue/queues.js';
import { readQueue } from '../build/services/queue/rows.js';
import { encodeEntity, entityKey } from '../build/services/table/entity-rows.js';
import { readTableId } from '../build/services/table/rows.js';
import { createTable } from '../build/services/table/tables.js';
import { groupOf, nameOf, snapshotOf } from './blob-loops.mjs';
import { account, accountKey } from './http-client.mjs';
import { MESSAGE } from './queue-loops.mjs';
import { entity, keysOf } from './table-loops.mjs';

const ROWS_A_COMMIT = 500;
const COMMITS_AT_ONCE = 4;
const TICKS_A_WEEK = 7n * 86_400n * 10_000_000n;

const [folder, what, parent, number] = process.argv.slice(2);
if (what === '--deletions') console.log(await countDeletedBlobs());
else await fill(Number(number));

async function fill(count) {
  mkdirSync(rowsPath(folder), { recursive: true });
  const partition = openPartition(await openLmdb({ location: rowsPath(folder) }));
  const { id } = (await openAccounts(partition, { developmentKeys: [accountKey] })).find(account);
  const storage = { partition, account: id, sweeper: { wake() {} } };
  const { queueKey, put } = await { blobs, tagged, snapshots, messages, entities, files }[what](storage);
  let next = 0;
  await Promise.all(
    Array.from({ length: COMMITS_AT_ONCE }, async () => {
      while (next < count) {
        const from = next;
        next = Math.min(count, from + ROWS_A_COMMIT);
        const to = next;
        await partition.transact(queueKey(from), async (tx) => put(tx, from, to));
      }
    }),
  );
  await partition.close();
}

async function tagged(storage) {
  return blobs(storage, (at) => [['group', groupOf(at)]]);
}

/** @param tagsOf the tags of a blob, by its number */
async function blobs(storage, tagsOf = () => []) {
  const { id, containerId, head, inline } = await newContainer(storage);
  return {
    queueKey: (from) => blobKey(id, containerId, nameOf(from)),
    async put(tx, from, to) {
      for (let at = from; at < to; at++) {
        const [name, tags] = [nameOf(at), tagsOf(at)];
        tx.put(blobKey(id, containerId, name), encodeBlobRecord({ ...head, tags, created: tx.timestamp }));
        tx.put(inlineKey(id, containerId, name), inline);
        await updateTagIndex(tx, id, { containerId, container: parent, name }, [], tags);
      }
    },
  };
}

/** Blobs, and their snapshots. */
async function snapshots(storage) {
  const { id, containerId, head, inline } = await newContainer(storage);
  return {
    queueKey: (from) => blobKey(id, containerId, nameOf(from)),
    put(tx, from, to) {
      for (let at = from; at < to; at++) {
        const { name, milliseconds } = snapshotOf(at);
        const stamp = milliseconds === undefined ? undefined : ticksFromUnix(milliseconds);
        const record = encodeBlobRecord({ ...head, created: tx.timestamp, etag: tx.timestamp });
        tx.put(recordKey(id, containerId, name, stamp), record);
        tx.put(inlineKey(id, containerId, name, stamp), inline);
      }
    },
  };
}

/** And what the record and the inline row of every blob in it have. */
async function newContainer(storage) {
  const { partition, account: id } = storage;
  await createContainer(storage, { container: parent, metadata: [] });
  const containerId = await partition.read((at) => readContainerId(at, storage, parent));
  const bytes = Buffer.alloc(1_024, 'x');
  const contentMd5 = createHash('md5').update(bytes).digest('base64');
  const head = { length: bytes.length, crc64: crc64Base64(bytes), content: { contentMd5 }, metadata: {} };
  return { id, containerId, head, inline: encodeBytes(bytes) };
}

async function messages(storage) {
  await createQueue(storage, { queue: parent, metadata: [] });
  const queue = await storage.partition.read((at) => readQueue(at, storage, parent));
  const text = Buffer.from(MESSAGE);
  return {
    queueKey: (from) => messageKey(queue, BigInt(from), { inserted: 0n, salt: 0n }),
    put(tx, from, to) {
      const rest = { visibleAt: tx.now, expires: tx.now + TICKS_A_WEEK, nonce: 0n, dequeueCount: 0, text };
      for (let at = from; at < to; at++) {
        const message = { id: { inserted: tx.timestamp, salt: BigInt(at) }, ...rest };
        tx.put(messageKey(queue, tx.now, message.id), encodeMessage(message));
        countMessage(tx, queue, message, 1);
      }
    },
  };
}

async function entities(storage) {
  await createTable(storage, { table: parent });
  const id = await storage.partition.read((at) => readTableId(at, storage, parent));
  const { properties } = readEntity(Buffer.from(entity('', '')));
  const keyAt = (at) => entityKey(storage.account, id, ...keysOf(at));
  return {
    queueKey: keyAt,
    put(tx, from, to) {
      for (let at = from; at < to; at++) {
        const [partitionKey, rowKey] = keysOf(at);
        tx.put(keyAt(at), encodeEntity({ partitionKey, rowKey }, properties));
      }
    },
  };
}

async function files(storage) {
  await createShare(storage, { share: parent, metadata: [], quota: undefined, tier: undefined });
  const place = { share: parent, path: 'filled' };
  const directory = await createDirectory(storage, { ...place, metadata: [], smb: {} });
  const share = await storage.partition.read((at) => readShare(at, storage, parent));
  const common = { kind: 'file', born: share.gen };
  return {
    queueKey: (from) => nodeKey(share, BigInt(from)),
    put(tx, from, to) {
      const times = { creation: tx.now, lastWrite: tx.now, change: tx.now };
      const smb = { attributes: 0x20, times, permission: directory.permission };
      for (let at = from; at < to; at++) {
        const [name, node] = [nameOf(at), BigInt(at + 1)];
        const rest = { parent: directory.id, name, length: 0, content: {}, metadata: {} };
        tx.put(entryKey(share, directory.id, foldName(name)), encodeEntry({ ...common, node, name }));
        tx.put(nodeKey(share, node), encodeNode({ ...common, ...smb, ...rest }));
      }
    },
  };
}

async function countDeletedBlobs() {
  const partition = openPartition(openLmdbReadOnly(rowsPath(folder)));
  const { id } = (await openAccounts(partition)).find(account);
  let count = 0;
  await partition.read(async (at) => {
    for (const row of await at.scan(deletionsIn(id), { limit: 1_000 })) {
      const deletion = decodeDeletion(row);
      if (deletion.kind !== 'container') continue;
      const heads = blobKeyPrefix(id, BigInt(deletion.container), '');
      count += (await at.scan({ from: heads, to: prefixEnd(heads) }, { limit: 10_000_000 })).length;
    }
  });
  await partition.close();
  return count;
}
