/**
 * node fill-azurite.mjs <folder> blobs|tagged|snapshots|messages <container or queue> <number>: the same for a folder of Azurite that holds one of
 * them: its document is repeated under other names, through the database library that Azurite itself uses.
 */
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { groupOf, nameOf, snapshotOf } from './blob-loops.mjs';

const require = createRequire(new URL('node_modules/azurite/package.json', import.meta.url));
const Loki = require('lokijs');
const [folder, what, parent, number] = process.argv.slice(2);
const { file, name, where, differing } = {
  blobs: {
    file: '__azurite_db_blob__.json',
    name: '$BLOBS_COLLECTION$',
    where: { containerName: parent },
    differing: (at) => ({ name: nameOf(at) }),
  },
  tagged: {
    file: '__azurite_db_blob__.json',
    name: '$BLOBS_COLLECTION$',
    where: { containerName: parent },
    differing: (at) => ({ name: nameOf(at), blobTags: { blobTagSet: [{ key: 'group', value: groupOf(at) }] } }),
  },
  snapshots: {
    file: '__azurite_db_blob__.json',
    name: '$BLOBS_COLLECTION$',
    where: { containerName: parent },
    differing(at) {
      const { name, milliseconds } = snapshotOf(at);
      const time = milliseconds === undefined ? '' : new Date(milliseconds).toISOString().replace('Z', '0000Z');
      return { name, snapshot: time };
    },
  },
  messages: {
    file: '__azurite_db_queue__.json',
    name: '$MESSAGES_COLLECTION$',
    where: { queueName: parent },
    differing: () => ({ messageId: randomUUID() }),
  },
}[what];

const database = new Loki(join(folder, file), { persistenceMethod: 'fs' });
await new Promise((resolve, reject) => database.loadDatabase({}, (error) => (error ? reject(error) : resolve())));
const collection = database.getCollection(name);
const { $loki, meta, ...first } = collection.findOne(where);
const text = JSON.stringify(first);
// The first is there already.
const documents = Array.from({ length: number - 1 }, (_, at) => ({ ...JSON.parse(text), ...differing(at + 1) }));
collection.insert(documents);
await new Promise((resolve, reject) => database.saveDatabase((error) => (error ? reject(error) : resolve())));
