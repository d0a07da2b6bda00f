/** A server of this process, and its storage, through which a test opens files as SMB does. */
import type { ShareServiceClient } from '@azure/storage-file-share';
import { silentLog } from '../../src/base/log.ts';
import { createContentStore } from '../../src/content/content-store.ts';
import { createActiveReads } from '../../src/content/gc/active-reads.ts';
import { activeOwners, ownerKey } from '../../src/content/membership/owner-rows.ts';
import type { Partition } from '../../src/partition/partition.ts';
import { ALL } from '../../src/rules/file/share-mode.ts';
import { composeServer } from '../../src/server/compose.ts';
import { resolveConfig, type StartOptions } from '../../src/server/config.ts';
import { openOwnedPartition } from '../../src/server/open-partition.ts';
import type { HoldfastServer } from '../../src/server/public.ts';
import { accountKey as accountRowKey, decodeAccount } from '../../src/services/common/account-rows.ts';
import type { Storage } from '../../src/services/common/storage.ts';
import { type OpenInput, openNode } from '../../src/services/file/open-node.ts';
import { watchedExtents, watchedHashers } from './content-store.ts';
import { connect } from './signed-client.mjs';
import { account, filesAt } from './test-server.ts';

/** Access masks by the sum of Read, Write and Delete: with 0 only attributes are read. */
export const RIGHTS = [0x80, 0x1, 0x2, 0x3, 0x1_0000, 0x1_0001, 0x1_0002, 0x1_0003] as const;

export interface HandleServer {
  readonly server: HoldfastServer;
  /** Of the account. */
  readonly url: string;
  readonly files: ShareServiceClient;
  readonly send: ReturnType<typeof connect>['send'];
  readonly storage: Storage;
  stop(): Promise<void>;
}

/** In memory, unless a folder is named. */
export async function startHandleServer(place: Pick<StartOptions, 'location'> = {}): Promise<HandleServer> {
  const rowsIn = place.location === undefined ? { inMemory: true } : place;
  const config = resolveConfig({ ...rowsIn, blobPort: 0, log: { level: 'silent' } });
  const rows = await openOwnedPartition(config, silentLog);
  const server = await composeServer({ config, log: silentLog, rows, givenCertificate: undefined });
  const url = new URL(server.fileUrl);
  const storage = await storageOf(rows.partition);
  const { send, close } = connect(url.origin);
  async function stop(): Promise<void> {
    close();
    await server.stop();
  }
  return { server, url: server.fileUrl, files: filesAt(server.fileUrl, () => url), send, storage, stop };
}

/** As the server itself has it, but for the extents, since no bytes are written here. */
async function storageOf(partition: Partition): Promise<Storage> {
  const { epoch, version, id } = await partition.read(async (at) => {
    const [owner] = [...(await activeOwners(at))];
    const [row, named] = await at.getMany([ownerKey(owner!), accountRowKey(account)]);
    return { epoch: owner!, version: row!.version, id: decodeAccount(named!).id };
  });
  const stores = { partition, extents: watchedExtents(), epoch, reads: createActiveReads() };
  return {
    partition,
    account: id,
    content: createContentStore({ ...stores, hashers: watchedHashers() }),
    owner: { claim: { epoch, version }, lose: async () => {} },
    sweeper: { wake() {} },
  };
}

export interface AskedOpen extends Partial<Omit<OpenInput, 'rights'>> {
  readonly access?: number;
}

/** An open of what is there, for reading and shared with all, unless asked for otherwise. */
export function openAs(storage: Storage, share: string, path: string, { access = 1, ...asked }: AskedOpen = {}) {
  return openNode(storage, {
    ...{ share, path, disposition: 'open', kind: 'any', rights: RIGHTS[access]!, shareMode: ALL, smb: {} },
    ...{ deletesOnClose: false, client: { session: '9479483953728458157', ip: '192.0.2.7:50445', name: 'desk' } },
    ...asked,
  });
}
