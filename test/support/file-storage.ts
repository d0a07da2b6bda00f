/** A share of one account, written as rows, with content and a sweeper. */
import { Owner } from '../../src/content/membership/owner.ts';
import type { Storage } from '../../src/services/common/storage.ts';
import { addRoot } from '../../src/services/file/namespace.ts';
import {
  encodeShare,
  encodeShareProperties,
  FIRST_GENERATION,
  nameKey,
  propertiesKey,
} from '../../src/services/file/rows.ts';
import { ACCOUNT, openWorld } from './blob-storage.ts';

export const SHARE = 'docs';
export const NO_METADATA = [] as const;

export async function openShare(extents?: Parameters<typeof openWorld>[0]) {
  const world = await openWorld(extents);
  const storage: Storage = {
    partition: world.partition,
    account: ACCOUNT,
    content: world.store,
    owner: await Owner.claim(world.partition, world.epoch),
    sweeper: world.sweeper,
  };
  const share = await world.act((tx) => {
    const created = { account: ACCOUNT, id: tx.timestamp, ...FIRST_GENERATION, quota: 5120 };
    tx.put(nameKey(ACCOUNT, SHARE), encodeShare(created));
    const properties = { metadata: {}, policies: [], tier: 'TransactionOptimized' } as const;
    tx.put(propertiesKey(ACCOUNT, created.id), encodeShareProperties(properties));
    addRoot(tx, created);
    return created;
  });
  return { ...world, storage, share };
}
