import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaultBodyBytesMax, defaultMemoryBytesMax } from './available-memory.ts';
import {
  describeDataLocation,
  developmentAccount,
  parseAccounts,
  resolveConfig,
  StartError,
  type StartOptions,
} from './config.ts';

const KEY = Buffer.from('a key of some length').toString('base64');

describe('Config', () => {
  it('serves the accounts of the store on the usual ports of 127.0.0.1 from ./holdfast-data without any option', () => {
    expect(resolveConfig()).toEqual({
      inMemory: false,
      location: resolve('holdfast-data'),
      shared: undefined,
      endpoints: [
        { service: 'blob', host: '127.0.0.1', port: 10_000, keepAliveSeconds: 5 },
        { service: 'queue', host: '127.0.0.1', port: 10_001, keepAliveSeconds: 5 },
        { service: 'table', host: '127.0.0.1', port: 10_002, keepAliveSeconds: 5 },
        { service: 'file', host: '127.0.0.1', port: 10_003, keepAliveSeconds: 5, isOptional: true },
      ],
      smb: { host: '127.0.0.1', port: 10_445, isOptional: true, requiresEncryption: false },
      accounts: undefined,
      testClock: false,
      https: undefined,
      oauth: undefined,
      looseMode: false,
      pathStyleOnly: false,
      cors: [],
      allowedHosts: [],
      memoryBytesMax: undefined,
      bodyBytesMax: defaultBodyBytesMax(),
      rehydrationSeconds: 5,
      seed: undefined,
      remoteMetrics: false,
      copyFrom: [],
      log: { level: 'silent', format: 'text', file: undefined, requests: false },
    });
  });

  it('is frozen all the way down', () => {
    const config = resolveConfig({ accounts: [developmentAccount] });
    const { accounts } = config;
    for (const part of [
      config,
      config.log,
      config.endpoints,
      config.endpoints[0],
      config.smb,
      accounts,
      accounts?.[0],
      accounts?.[0]?.keys,
    ]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  it('picks every port that is not given if one of them is 0', () => {
    const portsOf = (options: StartOptions) => resolveConfig(options).endpoints.map(({ port }) => port);
    expect(portsOf({ queuePort: 0 })).toEqual([0, 0, 0, 0]);
    expect(portsOf({ blobPort: 0, tablePort: 7 })).toEqual([0, 0, 7, 0]);
    expect(portsOf({ blobPort: 20_000 })).toEqual([20_000, 10_001, 10_002, 10_003]);
  });

  it('can do without the File service if its port is taken, unless the caller wants that port or nothing else', () => {
    const isOptional = (options: StartOptions) => resolveConfig(options).endpoints.at(-1)?.isOptional;
    expect(isOptional({ blobPort: 20_000 })).toBe(true);
    expect(isOptional({ filePort: 10_003 })).toBeUndefined();
    expect(isOptional({ services: ['file'] })).toBeUndefined();
    expect(isOptional({ blobPort: 0 })).toBeUndefined();
  });

  it('serves SMB where it serves files, unless told not to', () => {
    const usual = { host: '127.0.0.1', port: 10_445, isOptional: true, requiresEncryption: false };
    expect(resolveConfig().smb).toEqual(usual);
    expect(
      resolveConfig({ services: ['file'], smbHost: '::1', smbPort: 10_445, smbRequireEncryption: true }).smb,
    ).toEqual({
      ...{ host: '::1', port: 10_445, isOptional: false, requiresEncryption: true },
    });
    expect(resolveConfig({ tablePort: 0 }).smb).toEqual({ ...usual, port: 0, isOptional: false });
    expect(resolveConfig({ smbPort: 0 }).endpoints.map(({ port }) => port)).toEqual([0, 0, 0, 0]);
    expect(resolveConfig({ smb: false }).smb).toBeUndefined();
    expect(resolveConfig({ services: ['blob', 'queue', 'table'] }).smb).toBeUndefined();
    expect(() => resolveConfig({ smbPort: 65_536 })).toThrow('smbPort: 65536 is not a port');
  });

  it('serves only the services that are named', () => {
    const { endpoints } = resolveConfig({ services: ['table', 'queue'], queueHost: '::1', tablePort: 3 });
    expect(endpoints).toEqual([
      { service: 'queue', host: '::1', port: 10_001, keepAliveSeconds: 5 },
      { service: 'table', host: '127.0.0.1', port: 3, keepAliveSeconds: 5 },
    ]);
    expect(() => resolveConfig({ services: [] })).toThrow('at least one');
  });

  it('has no location in memory', () => {
    expect(resolveConfig({ inMemory: true }).location).toBeUndefined();
  });

  it('shares its data with --partition and --extents, and keeps only certificates in a location', () => {
    const options = { partition: 'postgres://me:secret@host:1/rows', extents: 'bytes' };
    const config = resolveConfig(options);
    expect(config).toMatchObject({ inMemory: false, location: undefined });
    expect(config.shared).toEqual({ partition: options.partition, extents: resolve('bytes') });
    expect(Object.isFrozen(config.shared)).toBe(true);
    expect(describeDataLocation(config)).toBe(`postgres://host:1/rows, and ${resolve('bytes')}`);
    expect(resolveConfig({ ...options, location: 'own', https: 'auto' }).location).toBe(resolve('own'));
  });

  it.each(['inMemoryPersistence', 'blobport', 'toString'])('refuses the option %s, which does not exist', (name) => {
    const options: StartOptions = { inMemory: true, ...{ [name]: true } };
    expect(() => resolveConfig(options)).toThrow(StartError);
    expect(() => resolveConfig(options)).toThrow(`There is no option ${name}; there are services, `);
  });

  it('refuses a location for data in memory', () => {
    expect(() => resolveConfig({ inMemory: true, location: 'data' })).toThrow(StartError);
  });

  it('limits data in memory to half of the memory', () => {
    expect(resolveConfig({ inMemory: true }).memoryBytesMax).toBe(defaultMemoryBytesMax());
  });

  it('refuses bearer tokens over HTTP, invalid origins, and a limit on memory without data in memory', () => {
    expect(() => resolveConfig({ oauth: 'basic' })).toThrow('over HTTPS only');
    expect(() => resolveConfig({ cors: ['example.com'] })).toThrow('example.com is not an origin');
    expect(() => resolveConfig({ allowedHosts: ['a.example:80'] })).toThrow('a.example:80 is not the name of a host');
    expect(() => resolveConfig({ bodyBytesMax: 0 })).toThrow('is more than 0');
    expect(resolveConfig({ copyFrom: ['HTTPS://Example.com:443/', 'http://0x7f.1'] }).copyFrom).toEqual([
      'https://example.com',
      'http://127.0.0.1',
    ]);
    for (const text of [
      'example.com',
      'ftp://example.com',
      'https://example.com/path',
      'https://a@b',
      'https://a?b',
      '*',
    ])
      expect(() => resolveConfig({ copyFrom: [text] })).toThrow(`copy-from: ${text} is not an origin`);
    for (const rehydrationSeconds of [-1, 0.5, Number.NaN]) {
      expect(() => resolveConfig({ rehydrationSeconds })).toThrow('a whole number of seconds');
    }
    expect(() => resolveConfig({ memoryBytesMax: 1 })).toThrow('needs --inMemoryPersistence');
    expect(() => resolveConfig({ inMemory: true, memoryBytesMax: Number.NaN })).toThrow('is more than 0');
  });

  it('refuses an account without a key, given by a program', () => {
    expect(() => resolveConfig({ accounts: [{ name: 'one', keys: [] }] })).toThrow('entry 1: it has no key');
  });
});

describe('AZURITE_ACCOUNTS', () => {
  it('names accounts with one or two keys', () => {
    expect(parseAccounts(`one:${KEY};two:${KEY}:${developmentAccount.keys[0]};`)).toEqual([
      { name: 'one', keys: [KEY] },
      { name: 'two', keys: [KEY, developmentAccount.keys[0]] },
    ]);
  });

  it('may have a second key that is not base64, as in Azurite, or an empty one', () => {
    const keysOf = (second: string) => parseAccounts(`one:${KEY}:${second}`)[0]!.keys;
    for (const second of ['c2Vjc', 'c2Vjc!', 'my-second_key', 'a2V5']) {
      expect(keysOf(second)).toEqual([KEY, Buffer.from(second, 'base64').toString('base64')]);
    }
    for (const nothing of ['', '!', '=']) expect(keysOf(nothing)).toEqual([KEY]);
    expect(() => parseAccounts(`one:c2Vjc:${KEY}`)).toThrow('entry 1: key 1 is not base64');
  });

  const refused: [text: string, fault: string][] = [
    [';', 'names no account'],
    [`one:${KEY};;two:${KEY}`, 'entry 2 has no account name'],
    [`:${KEY}`, 'entry 1 has no account name'],
    ['one', 'entry 1: it has no key'],
    ['one:', 'entry 1: key 1 is not base64'],
    [`one:${KEY}:${KEY}:${KEY}`, 'entry 1: it has 3 keys'],
    [`one:${KEY};one:${KEY}`, 'entry 2 repeats'],
    [`o/ne:${KEY}`, 'entry 1: an account name is'],
    [`one-secondary:${KEY}`, 'entry 1: the ending -secondary'],
  ];
  it.each(refused)('refuses %s', (text, fault) => {
    expect(() => parseAccounts(text)).toThrow(fault);
  });

  it('never repeats a key in its refusal, wherever the key stands', () => {
    const secret = 'c2VjcmV0c2VjcmV0';
    for (const text of [
      secret,
      `${secret}:one`,
      `one:${secret}!`,
      `${secret}/:${secret}`,
      `one:${secret};one:${secret}`,
    ]) {
      let message = '';
      try {
        parseAccounts(text);
      } catch (error) {
        message = String(error);
      }
      expect(message).toContain('AZURITE_ACCOUNTS');
      expect(message).not.toContain(secret);
    }
  });
});
