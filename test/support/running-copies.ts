/** Two accounts of a store, the running copies from one to the other, and jobs that run them and can be stopped. */
import { createChunkChecker } from '../../src/content/chunk-check.ts';
import { encodeKey, type Key } from '../../src/partition/keys.ts';
import { getBlob, getBlobProperties } from '../../src/services/blob/blobs.ts';
import { createContainer } from '../../src/services/blob/containers.ts';
import { copyBlob } from '../../src/services/blob/copies.ts';
import { blobCopies } from '../../src/services/blob/copy-target.ts';
import { putBlob } from '../../src/services/blob/put-blob.ts';
import { putAccount } from '../../src/services/common/account-rows.ts';
import { CopyJob, type JobContext } from '../../src/services/common/copy-job.ts';
import type { RemoteSources } from '../../src/services/common/remote-sources.ts';
import type { Storage } from '../../src/services/common/storage.ts';
import { check } from '../../src/services/maintenance/check.ts';
import { ACCOUNT, openWorld } from './blob-storage.ts';
import { localSources } from './local-sources.ts';

export const OTHER = 8n;
export const base = (container: string, blob: string) => ({ container, blob, conditions: {}, leaseId: undefined });

export async function openCopies(remote?: RemoteSources) {
  const world = await openWorld();
  await world.putContainer();
  const { partition, store: content, extents, sweeper } = world;
  await partition.transact(encodeKey(['account']), async (tx) =>
    putAccount(tx, { id: OTHER, name: 'other', keys: ['a2V5'], from: 'command' }),
  );
  const started: Key[] = [];
  const copies = { start: (key: Key) => void started.push(key), wake() {} };
  const common = { partition, content, sources: localSources, sweeper: { wake() {} }, copies, remote };
  const other: Storage = { ...common, account: OTHER };
  const storage: Storage = {
    ...common,
    account: ACCOUNT,
    granted: { source: { account: OTHER, container: undefined } },
  };
  await createContainer(other, { container: 'theirs', metadata: [], access: undefined });
  const { epoch } = content.newId();
  const context: JobContext = { ...common, epoch, retryMilliseconds: 0.1 };
  return {
    ...{ world, other, storage, context, partition, epoch, sweeper },
    async put(bytes: Buffer) {
      const body = {
        length: bytes.length,
        expected: {},
        async *bytes() {
          yield bytes;
        },
      };
      await putBlob(other, { ...base('theirs', 'from'), content: {}, metadata: [], body });
    },
    /** Returns the key of the running copy. */
    async start(remoteUrl?: string): Promise<Key> {
      const source = remoteUrl
        ? { url: remoteUrl, remote: { url: remoteUrl } }
        : { url: 'http://here/', service: 'blob' as const, container: 'theirs', item: 'from' };
      const rest = { sourceConditions: {}, sourceLeaseId: undefined, metadata: [] };
      await copyBlob(storage, { ...base('box', 'to'), source, ...rest });
      return started.at(-1)!;
    },
    run: (key: Key, signal = new AbortController().signal, more: Partial<JobContext> = {}) =>
      new CopyJob({ ...context, ...more }, blobCopies.open(content, key)!, signal).run(),
    /** Of the copy that was started last. */
    lastKey: () => started.at(-1)!,
    state: async () => (await getBlobProperties(storage, base('box', 'to'))).blob,
    async bytes(snapshot?: bigint) {
      const asked = { range: undefined, rangeMd5: undefined, rangeCrc64: undefined };
      const { bytes } = await getBlob(storage, { ...base('box', 'to'), ...asked, snapshot });
      const buffers: Buffer[] = [];
      for await (const buffer of Buffer.isBuffer(bytes) ? [bytes] : bytes) buffers.push(Buffer.from(buffer));
      return Buffer.concat(buffers);
    },
    findings: async () => (await check(partition, createChunkChecker(partition, extents))).findings,
  };
}

/** A signal that is aborted once the content store has begun so many uploads. */
export function stopAfterUploads(context: JobContext, count: number) {
  const stopping = new AbortController();
  let uploads = 0;
  const content = {
    ...context.content,
    upload: (...given: Parameters<JobContext['content']['upload']>) => {
      if (uploads++ === count) stopping.abort();
      return context.content.upload(...given);
    },
  };
  return { signal: stopping.signal, content };
}
