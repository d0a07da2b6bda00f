/** Ownership marker: binds a folder of extents to one store of rows. With the folder of another store, chunks would be missing, or collected as garbage. */
import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolderDurably, writeFileDurably } from '../base/durable-files.ts';
import { EXTENT_NAME } from '../extents/extents.ts';
import { encodeKey } from '../partition/keys.ts';
import type { Partition } from '../partition/partition.ts';
import { decodeValue, encodeValue } from '../partition/values.ts';
import { StartError } from './config.ts';

const STORE_KEY = encodeKey(['store']);
const MARKER_FILE = 'holdfast-store.json';
const FORMAT = 1;

interface StoreRow {
  readonly id: string;
}

/** The first process of a store marks the folder; all later ones verify the mark. Throws a StartError. */
export async function claimExtents(partition: Partition, folder: string): Promise<void> {
  try {
    await claimFolder(partition, folder);
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === undefined || syscall === undefined) throw error;
    throw new StartError(`Cannot use the folder ${folder} (${code}): choose another by --extents.`);
  }
}

async function claimFolder(partition: Partition, folder: string): Promise<void> {
  const row = await partition.read((at) => at.get(STORE_KEY));
  const id = row && decodeValue<StoreRow>(row).id;
  const found = (await readMarker(folder)) ?? (id === undefined ? await writeMarker(folder) : undefined);
  if (found === undefined) {
    throw new StartError(
      `The bytes of this store are not in ${folder}: it has no ${MARKER_FILE}. Name the folder that all share by --extents, and see that it is mounted.`,
    );
  }
  if (id === undefined && (await hasExtents(folder))) throw belongsToAnotherStore(folder);
  const { value } = await partition.transact(STORE_KEY, async (tx) => {
    const stored = await tx.get(STORE_KEY);
    if (stored) return decodeValue<StoreRow>(stored).id;
    tx.put(STORE_KEY, encodeValue({ id: found }));
    return found;
  });
  if (value !== found) throw belongsToAnotherStore(folder);
}

const belongsToAnotherStore = (folder: string): StartError =>
  new StartError(`The folder ${folder} holds the bytes of another store: name another one by --extents.`);

async function hasExtents(folder: string): Promise<boolean> {
  return (await readdir(folder)).some((name) => EXTENT_NAME.test(name));
}

async function readMarker(folder: string): Promise<string | undefined> {
  let text: string;
  try {
    text = await readFile(join(folder, MARKER_FILE), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const { format, store } = parseMarker(text);
  if (format === FORMAT && typeof store === 'string') return store;
  throw new StartError(`The file ${join(folder, MARKER_FILE)} is damaged, or was written by a newer Holdfast.`);
}

function parseMarker(text: string): { format?: unknown; store?: unknown } {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** Processes may start at the same moment: the marker is created exclusively, and the losers read it. */
async function writeMarker(folder: string): Promise<string | undefined> {
  makeFolderDurably(folder);
  const id = randomUUID();
  try {
    const text = `${JSON.stringify({ format: FORMAT, store: id })}\n`;
    writeFileDurably(join(folder, MARKER_FILE), text, { mode: 0o600, exclusive: true });
    return id;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return readMarker(folder);
  }
}
