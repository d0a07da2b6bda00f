import { describe, expect, it } from 'vitest';
import { ACCOUNT, openWorld } from '../../../test/support/blob-storage.ts';
import { encodeKey, keysUnder } from '../../partition/keys.ts';
import { openMemory } from '../../partition/memory/engine.ts';
import type { Partition } from '../../partition/partition.ts';
import { openPartition } from '../../partition/transact.ts';
import { encodeValue } from '../../partition/values.ts';
import { createContainer, renameContainer } from '../blob/containers.ts';
import { accountKey, removedAccountsIn } from '../common/account-rows.ts';
import { setServiceProperties } from '../common/service-properties.ts';
import type { Storage } from '../common/storage.ts';
import { startSweeper } from '../maintenance/sweeper.ts';
import { openAccounts } from './accounts.ts';

const PUBLIC_KEY = 'cHVibGljLWtleQ==';
const developmentKeys = [PUBLIC_KEY];
const environment = [
  { name: 'one', keys: ['b25l'] },
  { name: 'two', keys: ['dHdv', 'dHdvMg=='] },
];

const newStore = () => openPartition(openMemory());
const serve = (partition: Partition, given?: typeof environment) =>
  openAccounts(partition, { environment: given, developmentKeys });
const storageOf = (partition: Partition, account: bigint) =>
  ({ partition, account, sweeper: { wake() {} } }) as unknown as Storage;
const newContainer = (partition: Partition, account: bigint, container: string) =>
  createContainer(storageOf(partition, account), { container, metadata: [], access: undefined });
const names = (accounts: Awaited<ReturnType<typeof openAccounts>>) => accounts.list().map(({ name }) => name);

describe('The accounts of a start', () => {
  it('are the development account alone in a new store', async () => {
    const accounts = await serve(newStore());
    expect(accounts.list()).toMatchObject([{ name: 'devstoreaccount1', keys: developmentKeys }]);
  });

  it('are those of the environment, with its keys, and not the development account', async () => {
    const accounts = await serve(newStore(), environment);
    expect(accounts.list()).toMatchObject(environment);
    expect(accounts.find('devstoreaccount1')).toBeUndefined();
  });

  it('take the keys that the environment has now, and keep their id', async () => {
    const store = newStore();
    const before = await serve(store, environment);
    const after = await serve(store, [{ name: 'one', keys: ['bmV3'] }]);
    expect(after.find('one')).toEqual({ id: before.find('one')?.id, name: 'one', keys: ['bmV3'] });
  });

  it('are not those that only a former environment named, which keep their data', async () => {
    const store = newStore();
    const { id } = (await serve(store, environment)).find('two')!;
    await newContainer(store, id, 'box');
    const without = await serve(store, environment.slice(0, 1));
    expect(names(without)).toEqual(['one']);
    expect(without.stored().map(({ name, isServed }) => [name, isServed])).toEqual([
      ['one', true],
      ['two', false],
    ]);
    expect((await serve(store, environment)).find('two')?.id).toBe(id);
    expect(await store.read((at) => at.scan(keysUnder([id, 'n']), { limit: 5 }))).toHaveLength(1);
  });

  it('are the development account again without an environment, with its data', async () => {
    const store = newStore();
    const { id } = (await serve(store)).find('devstoreaccount1')!;
    expect(names(await serve(store, environment))).toEqual(['one', 'two']);
    expect((await serve(store)).list()).toEqual([{ id, name: 'devstoreaccount1', keys: developmentKeys }]);
  });

  it('give the development account its public key back that an environment had replaced', async () => {
    const store = newStore();
    await serve(store, [{ name: 'devstoreaccount1', keys: ['b3du'] }]);
    expect((await serve(store)).find('devstoreaccount1')?.keys).toEqual(developmentKeys);
  });

  it('always contain those that were added by the command', async () => {
    const store = newStore();
    await (await serve(store)).add('mine');
    expect(names(await serve(store))).toEqual(['devstoreaccount1', 'mine']);
    expect(names(await serve(store, environment))).toEqual(['mine', 'one', 'two']);
  });

  it('do not lose one that was added by the command, and then named by an environment', async () => {
    const store = newStore();
    await (await serve(store)).add('one');
    await serve(store, environment);
    expect((await serve(store)).find('one')?.keys).toEqual(['b25l']);
  });

  it('do not contain the development account once it was removed', async () => {
    const store = newStore();
    await (await serve(store)).remove('devstoreaccount1', { withData: false });
    expect(names(await serve(store))).toEqual([]);
    expect(names(await serve(store))).toEqual([]);
    expect(names(await serve(store, environment))).toEqual(['one', 'two']);
  });

  it('get keys if an earlier version has stored them without', async () => {
    const store = newStore();
    await store.transact(encodeKey(['test']), async (tx) => {
      for (const [name, id] of [
        ['devstoreaccount1', '7'],
        ['one', '8'],
        ['two', '9'],
      ] as const)
        tx.put(accountKey(name), encodeValue({ id }));
    });
    expect((await serve(store)).list()).toEqual([{ id: 7n, name: 'devstoreaccount1', keys: developmentKeys }]);
    expect((await serve(store, environment)).list()).toEqual([
      { id: 8n, ...environment[0] },
      { id: 9n, ...environment[1] },
    ]);
  });
});

describe('An account', () => {
  it('gets two keys of 64 random bytes if none are given', async () => {
    const { keys } = await (await serve(newStore())).add('mine');
    expect(keys.map((key) => Buffer.from(key, 'base64').length)).toEqual([64, 64]);
    expect(keys[0]).not.toBe(keys[1]);
  });

  it('is found at once, and after a restart', async () => {
    const store = newStore();
    const accounts = await serve(store);
    const added = await accounts.add('mine', ['a2V5']);
    expect(accounts.find('mine')).toEqual(added);
    expect((await serve(store)).find('mine')).toEqual(added);
  });

  it('cannot have a name that there is, served or not', async () => {
    const store = newStore();
    await serve(store, environment);
    const accounts = await serve(store);
    await expect(accounts.add('devstoreaccount1')).rejects.toMatchObject({ code: 'AccountAlreadyExists', status: 409 });
    await expect(accounts.add('two')).rejects.toThrow('AZURITE_ACCOUNTS');
  });

  const refused: [name: string, keys: string[] | undefined, fault: string][] = [
    ['', undefined, 'an account name is'],
    ['a/b', undefined, 'an account name is'],
    ['a'.repeat(64), undefined, 'an account name is'],
    ['health', undefined, "server's own endpoints"],
    ['metrics', undefined, "server's own endpoints"],
    ['_holdfast', undefined, "server's own endpoints"],
    ['mine-secondary', undefined, '-secondary'],
    ['mine', [], 'no key'],
    ['mine', ['a2V5', 'a2V5', 'a2V5'], '3 keys'],
    ['mine', ['a2V5', '!'], 'key 2 is not base64'],
  ];
  it.each(refused)('is refused with the name "%s" and the keys %j', async (name, keys, fault) => {
    const accounts = await serve(newStore());
    await expect(accounts.add(name, keys)).rejects.toThrow(fault);
    expect(names(accounts)).toEqual(['devstoreaccount1']);
  });

  it('gets one new key, and keeps the other', async () => {
    const store = newStore();
    const accounts = await serve(store);
    const [first, second] = (await accounts.add('mine')).keys;
    const afterFirst = await accounts.rotateKey('mine', 1);
    expect(afterFirst.keys[0]).not.toBe(first);
    expect(afterFirst.keys[1]).toBe(second);
    const afterSecond = await accounts.rotateKey('mine', 2);
    expect(afterSecond.keys[0]).toBe(afterFirst.keys[0]);
    expect(afterSecond.keys[1]).not.toBe(second);
    expect(accounts.find('mine')).toEqual(afterSecond);
    expect((await serve(store)).find('mine')).toEqual(afterSecond);
  });

  it('of one key gets a second one', async () => {
    const accounts = await serve(newStore());
    expect((await accounts.rotateKey('devstoreaccount1', 2)).keys).toEqual([PUBLIC_KEY, expect.any(String)]);
  });

  it('is another object once it is changed', async () => {
    const accounts = await serve(newStore());
    const before = accounts.find('devstoreaccount1');
    await accounts.rotateKey('devstoreaccount1', 1);
    expect(accounts.find('devstoreaccount1')).not.toBe(before);
  });

  it('is what its row says, however many change it at once', async () => {
    const store = newStore();
    const accounts = await serve(store);
    const results = await Promise.allSettled([
      ...Array.from({ length: 5 }, () => accounts.add('mine')),
      ...Array.from({ length: 5 }, () => accounts.rotateKey('mine', 1)),
      accounts.remove('mine', { withData: false }),
      ...Array.from({ length: 5 }, () => accounts.add('mine')),
      ...Array.from({ length: 5 }, () => accounts.rotateKey('mine', 2)),
    ]);
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1 + 5 + 1 + 1 + 5);
    expect((await serve(store)).find('mine')).toEqual(accounts.find('mine'));
  });

  it('that there is not can neither be changed nor removed', async () => {
    const accounts = await serve(newStore());
    await expect(accounts.rotateKey('nobody', 1)).rejects.toMatchObject({ code: 'AccountNotFound', status: 404 });
    await expect(accounts.remove('nobody', { withData: true })).rejects.toMatchObject({ code: 'AccountNotFound' });
  });
});

describe('A removed account', () => {
  it('is gone at once, and another one under its name has another id', async () => {
    const store = newStore();
    const accounts = await serve(store);
    const { id } = await accounts.add('mine');
    await accounts.remove('mine', { withData: false });
    expect(accounts.find('mine')).toBeUndefined();
    expect((await accounts.add('mine')).id).not.toBe(id);
  });

  it('had no containers, unless its data is to go too', async () => {
    const store = newStore();
    const accounts = await serve(store);
    const { id } = await accounts.add('mine');
    await newContainer(store, id, 'box');
    await expect(accounts.remove('mine', { withData: false })).rejects.toMatchObject({ code: 'AccountHasContainers' });
    expect(accounts.find('mine')?.id).toBe(id);
    await accounts.remove('mine', { withData: true });
    expect(accounts.find('mine')).toBeUndefined();
  });

  it('had no deleted container that can be restored, either', async () => {
    const store = newStore();
    const accounts = await serve(store);
    const { id } = await accounts.add('mine');
    const key = encodeKey([id, 'g', 'blob', 'box', 1n]);
    await store.transact(key, async (tx) => tx.put(key, Buffer.from('x')));
    await expect(accounts.remove('mine', { withData: false })).rejects.toMatchObject({ code: 'AccountHasContainers' });
    await accounts.remove('mine', { withData: true });
  });

  it('takes no container and no settings from requests that were on their way', async () => {
    const store = newStore();
    const accounts = await serve(store);
    const { id } = await accounts.add('mine');
    await accounts.remove('mine', { withData: false });
    await expect(newContainer(store, id, 'box')).rejects.toMatchObject({ code: 'AccountIsDisabled', status: 403 });
    const settings = setServiceProperties(storageOf(store, id), 'blob', { defaultServiceVersion: '2020-10-02' });
    await expect(settings).rejects.toMatchObject({ code: 'AccountIsDisabled' });
    expect(await store.read((at) => at.scan(keysUnder([id]), { limit: 5 }))).toEqual([]);
  });

  it('has no container renamed, which its removal could miss under either name', async () => {
    const store = newStore();
    const accounts = await serve(store);
    const { id } = await accounts.add('mine');
    await newContainer(store, id, 'box');
    await accounts.remove('mine', { withData: true });
    const input = { container: 'crate', source: 'box', sourceLeaseId: undefined };
    await expect(renameContainer(storageOf(store, id), input)).rejects.toMatchObject({ code: 'AccountIsDisabled' });
  });

  it('never loses a container that was made while it was refused to remove it', async () => {
    for (let round = 0; round < 50; round++) {
      const store = newStore();
      const accounts = await serve(store);
      const { id } = await accounts.add('mine');
      const create = async () => {
        for (let turn = 0; turn < round; turn++) await undefined;
        await newContainer(store, id, 'box');
      };
      const results = await Promise.allSettled([accounts.remove('mine', { withData: false }), create()]);
      expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
      const boxes = await store.read((at) => at.scan(keysUnder([id, 'n']), { limit: 5 }));
      expect(boxes).toHaveLength(accounts.find('mine') ? 1 : 0);
    }
  });

  it('gives all back that it held, beside the data of the others', async () => {
    const world = await openWorld();
    await world.putContainer();
    for (let i = 0; i < 20; i++) await world.putBlob(`large-${i}`, 2_000);
    await world.putInline('small');
    await world.putUncommitted('blocks', 3);
    await setServiceProperties(storageOf(world.partition, ACCOUNT), 'blob', { defaultServiceVersion: '2020-10-02' });
    const before = await serve(world.partition);
    const other = await before.add('other');
    await newContainer(world.partition, other.id, 'box');
    await world.stop();
    await before.remove('seven', { withData: true });

    // As after a kill after the commit: the next process finds the removed account.
    const accounts = await serve(world.partition);
    expect(accounts.removed()).toEqual([ACCOUNT]);
    const sweeper = startSweeper({
      ...{ partition: world.partition, content: world.store, lowWatermark: world.reads },
      accounts: () => [...accounts.stored().map(({ id }) => id), ...accounts.removed()],
      removed: () => accounts.removed(),
    });
    sweeper.wake();
    await sweeper.idle();
    expect(await world.kinds()).toEqual({});
    expect(await world.partition.read((at) => at.scan(keysUnder([other.id, 'n']), { limit: 5 }))).toHaveLength(1);
    await sweeper.stop();

    const next = await serve(world.partition);
    expect(next.removed()).toEqual([]);
    expect(await world.partition.read((at) => at.scan(removedAccountsIn(), { limit: 5 }))).toEqual([]);
  });
});

describe('Accounts of a store that several processes share', () => {
  const share = (partition: Partition) => openAccounts(partition, { developmentKeys }, { isShared: true });

  it('are those of the rows after a refresh; what did not change is the same object', async () => {
    const store = newStore();
    const [one, two] = [await share(store), await share(store)];
    const before = two.find('devstoreaccount1');
    await one.add('mine', ['b25l']);
    expect(two.find('mine')).toBeUndefined();
    await two.refresh();
    expect(two.find('mine')).toEqual(one.find('mine'));
    expect(two.find('devstoreaccount1')).toBe(before);
    const { keys } = await one.rotateKey('mine', 1);
    const old = two.find('mine');
    await two.refresh();
    expect([two.find('mine')?.keys, old?.keys]).toEqual([keys, ['b25l']]);
    await one.remove('mine', { withData: true });
    await two.refresh();
    expect(two.find('mine')).toBeUndefined();
    expect(two.removed()).toEqual(one.removed());
  });

  it('are not those of an earlier state when a refresh and a change meet', async () => {
    const store = newStore();
    let gate: Promise<void> | undefined;
    const slow: Partition = {
      ...store,
      async read(fn) {
        const held = gate;
        gate = undefined;
        const found = await store.read(fn);
        await held;
        return found;
      },
    };
    const accounts = await share(slow);
    let go = () => {};
    gate = new Promise((resolve) => {
      go = resolve;
    });
    const refreshing = accounts.refresh();
    const adding = accounts.add('mine');
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    go();
    await Promise.all([refreshing, adding]);
    expect(accounts.find('mine')).toBeDefined();
  });

  it('are never forgotten once they are removed: a request may still be on its way somewhere', async () => {
    const store = newStore();
    const one = await share(store);
    const { id } = await one.add('mine');
    await one.remove('mine', { withData: false });
    const two = await share(store);
    expect(two.removed()).toEqual([]);
    await two.refresh();
    expect(two.removed()).toEqual([]);
    await expect(newContainer(store, id, 'box')).rejects.toMatchObject({ code: 'AccountIsDisabled' });
  });
});

describe('Settings of an account', () => {
  it('are refused if there is no such setting, and changed otherwise', async () => {
    const accounts = await serve(newStore());
    const misspelt = { containerRetentionDay: 7 } as Partial<Awaited<ReturnType<typeof accounts.set>>>;
    await expect(accounts.set('devstoreaccount1', misspelt)).rejects.toThrow(
      'There is no setting containerRetentionDay.',
    );
    expect(await accounts.set('devstoreaccount1', { shareRetentionDays: 7 })).toEqual({
      containerRetentionDays: 0,
      shareRetentionDays: 7,
    });
  });
});
