/** The request logs of an account: block blobs in the container $logs, by service and hour. */
import { formatIso7 } from '../../base/time.ts';
import { logFolder, retentionStart } from '../../rules/analytics/time-partitions.ts';
import { LOGS_CONTAINER } from '../../rules/names.ts';
import { deleteBlob } from '../blob/blobs.ts';
import { createContainer } from '../blob/containers.ts';
import { listBlobs } from '../blob/listing.ts';
import { putBlob } from '../blob/put-blob.ts';
import { StorageError } from '../common/errors.ts';
import type { Storage } from '../common/storage.ts';
import { WHOLE_BYTES_MAX } from '../common/upload.ts';
import type { LogPage } from './log-buffer.ts';

const container = LOGS_CONTAINER;

/** Under the next number of its hour; another process may take it first, then under the one after. */
export async function writeLog(storage: Storage, page: LogPage): Promise<void> {
  const bySystem: Storage = { ...storage, granted: undefined, bySystem: true };
  const bytes = Buffer.from(`${page.lines.join('\n')}\n`);
  const content = { length: bytes.length, ...(bytes.length <= WHOLE_BYTES_MAX && { whole: bytes }) };
  const second = (instant: bigint) => `${formatIso7(instant).slice(0, 19)}Z`;
  const metadata = [
    ['LogType', ['read', 'write', 'delete'].filter((kind) => page.kinds.has(kind as 'read')).join()],
    ['StartTime', second(page.first)],
    ['EndTime', second(page.last)],
    ['LogVersion', page.version],
  ] as const;
  let number = await nextNumber(bySystem, page.folder);
  for (;;) {
    const blob = `${page.folder}${String(number).padStart(6, '0')}.log`;
    try {
      await putBlob(bySystem, {
        ...{ container, blob, metadata, leaseId: undefined },
        conditions: { ifNoneMatch: '*' },
        content: { contentType: 'text/plain' },
        body: { ...content, expected: {}, bytes: () => once(bytes) },
      });
      return;
    } catch (error) {
      if (!isRefusal(error, 'BlobAlreadyExists')) throw error;
      number++;
    }
  }
}

async function nextNumber(storage: Storage, folder: string): Promise<number> {
  let last: string | undefined;
  for (let marker: string | undefined; ; ) {
    try {
      marker = await listBlobs(storage, listing(folder, marker), (items) => {
        const item = items.at(-1);
        if (item && 'name' in item) last = item.name;
      });
    } catch (error) {
      if (!isRefusal(error, 'ContainerNotFound')) throw error;
      await makeContainer(storage);
    }
    if (marker === undefined || marker === '') break;
  }
  return last === undefined ? 0 : Number.parseInt(last.slice(folder.length), 10) + 1 || 0;
}

async function makeContainer(storage: Storage): Promise<void> {
  try {
    await createContainer(storage, { container, metadata: [], access: undefined });
  } catch (error) {
    if (!isRefusal(error, 'ContainerAlreadyExists')) throw error;
  }
}

/** In pages: the names of a service's logs are in the order of their hours. */
export async function removeOldLogs(storage: Storage, service: string, days: number, now: bigint): Promise<void> {
  const end = logFolder(service, retentionStart(now, days));
  for (let marker: string | undefined; marker !== ''; ) {
    const old: string[] = [];
    let hasNewer = false;
    try {
      marker = await listBlobs(storage, listing(`${service}/`, marker), (items) => {
        for (const item of items) {
          if ('name' in item && item.name < end) old.push(item.name);
          else hasNewer = true;
        }
      });
    } catch (error) {
      if (isRefusal(error, 'ContainerNotFound')) return;
      throw error;
    }
    for (const blob of old) await remove(storage, blob);
    if (hasNewer) return;
  }
}

/** A leased blob stays; a blob that another request has deleted is no failure. */
async function remove(storage: Storage, blob: string): Promise<void> {
  try {
    await deleteBlob(storage, { container, blob, conditions: {}, leaseId: undefined });
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
  }
}

const PAGE_BLOBS = 500;

function listing(prefix: string, marker: string | undefined) {
  return { container, prefix, marker, resultsMax: PAGE_BLOBS, delimiter: undefined, uncommitted: false };
}

function isRefusal(error: unknown, code: string): boolean {
  return error instanceof StorageError && error.code === code;
}

async function* once(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes;
}
