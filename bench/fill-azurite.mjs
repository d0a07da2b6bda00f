/**
 * node fill-azurite.mjs <folder> <container> <blobs>: the same for a folder of Azurite that holds one blob in this
 * container: its document is repeated under other names, through the database library that Azurite itself uses.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { nameOf } from './loops.mjs';

const require = createRequire(new URL('node_modules/azurite/package.json', import.meta.url));
const Loki = require('lokijs');
const [folder, container, blobs] = process.argv.slice(2);

const database = new Loki(join(folder, '__azurite_db_blob__.json'), { persistenceMethod: 'fs' });
await new Promise((resolve, reject) => database.loadDatabase({}, (error) => (error ? reject(error) : resolve())));
const collection = database.getCollection('$BLOBS_COLLECTION$');
const { $loki, meta, ...first } = collection.findOne({ containerName: container });
const text = JSON.stringify(first);
const documents = [];
for (let number = 0; number < Number(blobs); number++) {
  if (nameOf(number) !== first.name) documents.push({ ...JSON.parse(text), name: nameOf(number) });
}
collection.insert(documents);
await new Promise((resolve, reject) => database.saveDatabase((error) => (error ? reject(error) : resolve())));
