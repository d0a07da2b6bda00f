import { AzureNamedKeyCredential, generateTableSas, type TableSasSignatureValues } from '@azure/data-tables';
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  BlobSASPermissions,
  type BlobSASSignatureValues,
  ContainerSASPermissions,
  generateAccountSASQueryParameters,
  generateBlobSASQueryParameters,
  SASProtocol,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import {
  generateQueueSASQueryParameters,
  QueueSASPermissions,
  type QueueSASSignatureValues,
} from '@azure/storage-queue';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatIso7 } from '../../base/time.ts';
import { StorageError } from '../../services/common/errors.ts';
import type { ServiceName } from '../../services/common/names.ts';
import { parseQuery } from '../request.ts';
import { parseSas, parseSasDate, type SentSas } from './sas-parser.ts';
import {
  accountSasToken,
  accountStringToSign,
  blobSasToken,
  isSignedBy,
  queueSasToken,
  sasMismatch,
  serviceStringToSign,
  tableSasToken,
} from './sas-signature.ts';
import { type BlobSasFields, overrideHeaders } from './service-sas.ts';

const ACCOUNT = 'devstoreaccount1';
const KEY = Buffer.from('a key that is used in this test only').toString('base64');
const OTHER_KEY = Buffer.from('another key').toString('base64');
const credential = new StorageSharedKeyCredential(ACCOUNT, KEY);

const aDate = fc.date({ min: new Date(0), max: new Date('2099-12-31'), noInvalidDate: true });
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const anIpRange = fc.oneof(
  fc.ipV4().map((start) => ({ start })),
  fc.tuple(fc.nat(255), fc.nat(255)).map(([one, other]) => ({
    start: `10.0.0.${Math.min(one, other)}`,
    end: `10.0.0.${Math.max(one, other)}`,
  })),
);
const aVersion = fc.constantFrom('2015-04-05', '2017-11-09', '2018-11-09', '2019-12-12', '2020-12-06', '2025-07-05');
const aName = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 });
const aHeader = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 30 });
const aProtocol = fc.constantFrom(SASProtocol.Https, SASProtocol.HttpsAndHttp);
const lettersOf = (letters: string) => fc.subarray([...letters], { minLength: 1 }).map((some) => some.join(''));

function readable(query: string, service: ServiceName = 'blob'): SentSas {
  const sas = parseSas(parseQuery(query), service);
  if (!sas) throw new Error('no signature was seen');
  return sas;
}

describe('the account SAS of @azure/storage-blob', () => {
  it('is parsed, and created with the same text', () => {
    fc.assert(
      fc.property(
        fc.record({
          permissions: lettersOf('rwdl').map((text) => AccountSASPermissions.parse(text)),
          services: lettersOf('bfqt').map((text) => AccountSASServices.parse(text).toString()),
          resourceTypes: lettersOf('sco').map((text) => AccountSASResourceTypes.parse(text).toString()),
          startsOn: maybe(aDate),
          expiresOn: aDate,
          ipRange: maybe(anIpRange),
          protocol: maybe(aProtocol),
          version: aVersion,
          encryptionScope: maybe(fc.constantFrom('scope')),
        }),
        ({ encryptionScope, ...some }) => {
          const values = some.version < '2020-12-06' ? some : { ...some, encryptionScope };
          const sas = readable(generateAccountSASQueryParameters(defined(values), credential).toString());
          expect(sas).toMatchObject({ kind: 'account SAS', services: values.services });
          if (sas.kind !== 'account SAS') return;
          expect(isSignedBy(sas, accountStringToSign(ACCOUNT, sas), [OTHER_KEY, KEY])).toBe(true);
          const { signature, kind, ...fields } = sas;
          expect(readable(accountSasToken(ACCOUNT, fields, KEY))).toEqual(sas);
          expect(isSignedBy(sas, accountStringToSign(ACCOUNT, { ...sas, permissions: 'rwdlacu' }), [KEY])).toBe(false);
        },
      ),
    );
  });
});

describe('the service SAS of @azure/storage-blob', () => {
  const aResource = fc.oneof(
    fc.record({ permissions: lettersOf('racwdl').map((text) => ContainerSASPermissions.parse(text)) }),
    fc.record({
      blobName: aName,
      permissions: lettersOf('racwd').map((text) => BlobSASPermissions.parse(text)),
    }),
    fc.record({
      blobName: aName,
      permissions: lettersOf('rd').map((text) => BlobSASPermissions.parse(text)),
      snapshotTime: fc.constant('2024-01-02T03:04:05.1234567Z'),
    }),
    fc.record({
      blobName: aName,
      permissions: lettersOf('rd').map((text) => BlobSASPermissions.parse(text)),
      versionId: fc.constant('2024-01-02T03:04:05.1234567Z'),
    }),
    fc.record({ identifier: aName.map((name) => name.trim() || 'x') }),
  );
  const theRest = fc.record({
    startsOn: maybe(aDate),
    expiresOn: aDate,
    ipRange: maybe(anIpRange),
    protocol: maybe(aProtocol),
    version: aVersion,
    cacheControl: maybe(aHeader),
    contentDisposition: maybe(aHeader),
    contentEncoding: maybe(aHeader),
    contentLanguage: maybe(aHeader),
    contentType: maybe(aHeader),
    encryptionScope: maybe(fc.constant('scope')),
  });

  it('is parsed, and created with the same text', () => {
    fc.assert(
      fc.property(aResource, theRest, (resource, { encryptionScope, ...rest }) => {
        const mine: Partial<BlobSASSignatureValues> = resource;
        const version =
          (mine.snapshotTime || mine.versionId) && rest.version < '2019-12-12' ? '2019-12-12' : rest.version;
        const scope = version < '2020-12-06' ? {} : { encryptionScope };
        const values = defined({ containerName: 'con', ...mine, ...rest, ...scope, version }) as BlobSASSignatureValues;
        const token = generateBlobSASQueryParameters(values, credential).toString();
        const sas = readable(token);
        if (sas.kind !== 'service SAS' || sas.service !== 'blob') throw new Error('of the wrong kind');
        const target = {
          container: 'con',
          blob: mine.blobName ?? '',
          snapshot: mine.snapshotTime,
          versionId: mine.versionId,
        };
        expect(isSignedBy(sas, serviceStringToSign(ACCOUNT, target, sas), [KEY])).toBe(true);
        const { signature, kind, ...fields } = sas;
        expect(readable(blobSasToken(ACCOUNT, target, fields, KEY))).toEqual(sas);
        for (const other of [
          { ...target, container: 'other' },
          { ...target, blob: `${target.blob}x` },
        ]) {
          const isSame = sas.resource === 'c' && other.container === 'con';
          expect(isSignedBy(sas, serviceStringToSign(ACCOUNT, other, sas), [KEY])).toBe(isSame);
        }
      }),
      { numRuns: 300 },
    );
  });
});

/** Permissions and times, or a stored policy with them. */
const aGrant = <Permissions>(permissions: fc.Arbitrary<Permissions>) =>
  fc.oneof(
    fc.record({ permissions, expiresOn: aDate, startsOn: maybe(aDate) }),
    fc.record({ identifier: fc.constantFrom('policy', 'ä policy') }),
  );
const itsUse = fc.record({ ipRange: maybe(anIpRange), protocol: maybe(aProtocol), version: aVersion });

describe('the service SAS of @azure/storage-queue', () => {
  it('is parsed, and created with the same text', () => {
    const permissions = lettersOf('raup').map((text) => QueueSASPermissions.parse(text));
    fc.assert(
      fc.property(aGrant(permissions), itsUse, (grant, use) => {
        const identifier = 'identifier' in grant ? grant.identifier : '';
        // The SDK signs "undefined" where there is no identifier: an empty identifier is the same as none.
        const values = defined({ ...grant, identifier, queueName: 'line', ...use }) as QueueSASSignatureValues;
        const sas = readable(generateQueueSASQueryParameters(values, credential).toString(), 'queue');
        if (sas.kind !== 'service SAS' || sas.service !== 'queue') throw new Error('of the wrong kind');
        const textOf = (container: string) => serviceStringToSign(ACCOUNT, { container }, sas);
        expect(isSignedBy(sas, textOf('line'), [OTHER_KEY, KEY])).toBe(true);
        expect(isSignedBy(sas, textOf('another'), [KEY])).toBe(false);
        const { signature, kind, service, ...fields } = sas;
        expect(readable(queueSasToken(ACCOUNT, 'line', fields, KEY), 'queue')).toEqual(sas);
      }),
    );
  });
});

describe('the service SAS of @azure/data-tables', () => {
  // The SDK leaves empty fields out of the query.
  const aKey = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 10 });
  const entities = fc.oneof(
    fc.constant({}),
    fc.record({ startPartitionKey: aKey, startRowKey: maybe(aKey) }),
    fc.record({ endPartitionKey: aKey, endRowKey: maybe(aKey) }),
    fc.record({ startPartitionKey: aKey, startRowKey: aKey, endPartitionKey: aKey, endRowKey: aKey }),
  );
  const permissions = fc.record({
    query: fc.constant(true),
    add: fc.boolean(),
    update: fc.boolean(),
    delete: fc.boolean(),
  });

  it('is parsed, and created with the same text', () => {
    const owner = new AzureNamedKeyCredential(ACCOUNT, KEY);
    fc.assert(
      fc.property(aGrant(permissions), entities, itsUse, (grant, keys, use) => {
        const values = defined({ ...grant, ...defined(keys), ...use }) as TableSasSignatureValues;
        const sas = readable(generateTableSas('People', owner, values), 'table');
        if (sas.kind !== 'service SAS' || sas.service !== 'table') throw new Error('of the wrong kind');
        expect(sas.table).toBe('People');
        expect(isSignedBy(sas, serviceStringToSign(ACCOUNT, { container: '' }, sas), [OTHER_KEY, KEY])).toBe(true);
        const others = { ...sas, table: 'others' };
        expect(isSignedBy(sas, serviceStringToSign(ACCOUNT, { container: '' }, others), [KEY])).toBe(false);
        const { signature, kind, service, ...fields } = sas;
        expect(readable(tableSasToken(ACCOUNT, fields, KEY), 'table')).toEqual(sas);
      }),
    );
  });

  it('may begin at the empty key', () => {
    const wanted = { version: '2022-11-02', table: 'people', permissions: 'r', expiry: '2030-01-01' };
    const token = tableSasToken(ACCOUNT, { ...wanted, keys: ['', '', 'a', undefined] }, KEY);
    // No key is before the empty key, and it is signed like an absent one.
    expect(readable(token, 'table')).toMatchObject({ keys: [undefined, undefined, 'a', undefined] });
  });
});

describe('the text that a service SAS signs', () => {
  const fields = {
    kind: 'service SAS',
    service: 'blob',
    permissions: 'r',
    start: 'ST',
    expiry: 'SE',
    ip: 'IP',
    protocol: 'PR',
    encryptionScope: 'SC',
    identifier: 'SI',
    depth: undefined,
    overrides: ['1', '2', '3', '4', '5'],
  } as const;
  const target = { container: 'con', blob: 'a/b/c', snapshot: 'SNAP', versionId: 'VERSION' };

  it.each([
    ['2012-02-12', 'b', 'r|ST|SE|/acc/con/a/b/c|SI|2012-02-12'],
    ['2013-08-15', 'c', 'r|ST|SE|/acc/con|SI|2013-08-15|1|2|3|4|5'],
    ['2015-02-21', 'b', 'r|ST|SE|/blob/acc/con/a/b/c|SI|2015-02-21|1|2|3|4|5'],
    ['2015-04-05', 'b', 'r|ST|SE|/blob/acc/con/a/b/c|SI|IP|PR|2015-04-05|1|2|3|4|5'],
    ['2018-11-09', 'bs', 'r|ST|SE|/blob/acc/con/a/b/c|SI|IP|PR|2018-11-09|bs|SNAP|1|2|3|4|5'],
    ['2018-11-09', 'b', 'r|ST|SE|/blob/acc/con/a/b/c|SI|IP|PR|2018-11-09|b||1|2|3|4|5'],
    ['2020-12-06', 'bv', 'r|ST|SE|/blob/acc/con/a/b/c|SI|IP|PR|2020-12-06|bv|VERSION|SC|1|2|3|4|5'],
    ['2020-12-06', 'c', 'r|ST|SE|/blob/acc/con|SI|IP|PR|2020-12-06|c||SC|1|2|3|4|5'],
  ] as const)('has the form of version %s (sr=%s)', (version, resource, lines) => {
    expect(serviceStringToSign('acc', target, { ...fields, version, resource })).toBe(lines.replaceAll('|', '\n'));
  });

  it('names the directory, with the depth of sdd', () => {
    const resourceAt = (depth: number, blob = 'a/b/c') =>
      serviceStringToSign(
        'acc',
        { container: 'con', blob },
        { ...fields, version: '2020-12-06', resource: 'd', depth },
      ).split('\n')[3];
    expect([0, 1, 2, 3, 9].map((depth) => resourceAt(depth))).toEqual([
      '/blob/acc/con',
      '/blob/acc/con/a',
      '/blob/acc/con/a/b',
      '/blob/acc/con/a/b/c',
      '/blob/acc/con/a/b/c',
    ]);
    expect(resourceAt(1, 'ab/c')).toBe('/blob/acc/con/ab');
  });

  it('is disclosed only where the key is public', () => {
    expect(sasMismatch('devstoreaccount1', 'the text').details?.AuthenticationErrorDetail).toContain('the text');
    expect(sasMismatch('mine', 'the text').details?.AuthenticationErrorDetail).not.toContain('the text');
  });
});

describe('a shared access signature', () => {
  const good = { sv: '2021-06-08', sr: 'b', sp: 'r', se: '2030-01-01', sig: 'abc=' };
  const ofAccount = { sv: '2021-06-08', ss: 'b', srt: 'sco', sp: 'rwdlacup', se: '2030-01-01', sig: 'abc=' };

  it('is absent from a query without sig and sv', () => {
    expect(parseSas({}, 'blob')).toBeUndefined();
    expect(parseSas({ comp: 'list', restype: 'container', prefix: 'sig' }, 'blob')).toBeUndefined();
  });

  it.each([
    ['without sig', { ...good, sig: undefined }, 'sig is mandatory. Cannot be empty'],
    ['with an empty sig', { ...good, sig: '' }, 'sig is mandatory. Cannot be empty'],
    ['without sv', { ...good, sv: undefined }, 'sv is mandatory. Cannot be empty'],
    ['without se', { ...good, se: undefined }, 'se is mandatory. Cannot be empty'],
    ['without sp', { ...good, sp: undefined }, 'sp is mandatory. Cannot be empty'],
    ['without sr', { ...good, sr: undefined }, 'sr is mandatory. Cannot be empty'],
    ['of an account without se', { ...ofAccount, se: undefined, si: 'x' }, 'se is mandatory. Cannot be empty'],
    ['without srt', { ...ofAccount, srt: undefined }, 'srt is mandatory. Cannot be empty'],
    ['without ss', { ...ofAccount, ss: undefined }, 'ss is mandatory. Cannot be empty'],
    ['with sv that is no version', { ...good, sv: '2021-13-08' }, 'sv'],
    ['with sv before 2012', { ...good, sv: '2011-08-18' }, 'sv'],
    ['of an account with sv before 2015-04-05', { ...ofAccount, sv: '2014-02-14' }, 'sv'],
    ['with another sr', { ...good, sr: 'q' }, 'sr'],
    ['with sr=d before it was signed', { ...good, sr: 'd', sdd: '1', sv: '2017-11-09' }, 'sr'],
    ['with sr=bs before it was signed', { ...good, sr: 'bs', sv: '2017-11-09' }, 'sr'],
    ['with sr=d and no depth', { ...good, sr: 'd' }, 'sdd is mandatory. Cannot be empty'],
    ['with sr=d and a depth that is no number', { ...good, sr: 'd', sdd: '-1' }, 'sdd'],
    ['with an unknown permission', { ...good, sp: 'rz' }, 'sp'],
    ['with a permission twice', { ...good, sp: 'rr' }, 'sp'],
    ['with permissions in another order', { ...good, sp: 'wr' }, 'sp'],
    ['of an account with an unknown permission', { ...ofAccount, sp: 'rz' }, 'sp'],
    ['with an unknown service', { ...ofAccount, ss: 'bx' }, 'ss'],
    ['with an unknown resource type', { ...ofAccount, srt: 'x' }, 'srt'],
    ['with a start that is no date', { ...good, st: 'tomorrow' }, 'st'],
    ['with an expiry that is no date', { ...good, se: '2030-02-30' }, 'se'],
    ['with HTTP only', { ...good, spr: 'http' }, 'spr'],
    ['with a broken address', { ...good, sip: '1.2.3.256' }, 'sip'],
    ['with a range that ends before it begins', { ...good, sip: '1.2.3.4-1.2.3.3' }, 'sip'],
    ['with a range of three', { ...good, sip: '1.1.1.1-1.1.1.2-1.1.1.3' }, 'sip'],
    ['with a header that HTTP cannot carry', { ...good, rscd: 'a\r\nSet-Cookie: b' }, 'rscd'],
  ])('%s is refused', (_, query, detail) => {
    const error = refusal(defined(query));
    expect(error).toMatchObject({ status: 403, code: 'AuthenticationFailed' });
    expect(error.details?.AuthenticationErrorDetail).toContain(detail);
  });

  it('may leave fields to a stored policy', () => {
    expect(parseSas({ sv: '2021-06-08', sr: 'c', si: 'policy', sig: 'abc=' }, 'blob')).toMatchObject({
      identifier: 'policy',
      permissions: '',
      expiry: '',
    });
  });

  it('may have the newer permissions in any order', () => {
    for (const sp of ['racwdxyltfmeopi', 'racwdxltmeiyf', 'rtx'])
      expect(parseSas({ ...good, sp }, 'blob')).toBeDefined();
  });

  it('of a user delegation key is refused as not implemented', () => {
    expect(refusal({ ...good, skoid: 'x' })).toMatchObject({ status: 501, code: 'NotImplemented' });
  });

  it('overrides headers of the reply, where the overrides are signed', () => {
    const query = { ...good, rscc: 'no-cache', rscd: 'inline; filename=ü', rsct: '' };
    const headers = (sv: string) => overrideHeaders(parseSas({ ...query, sv }, 'blob') as SentSas & BlobSasFields);
    const name = Buffer.from('inline; filename=ü').toString('latin1');
    expect(headers('2021-06-08')).toEqual({ 'Cache-Control': 'no-cache', 'Content-Disposition': name });
    expect(headers('2012-02-12')).toEqual({});
  });

  it('accepts all date formats of Azure', () => {
    const read = (text: string) => {
      const ticks = parseSasDate(text);
      return ticks && formatIso7(ticks);
    };
    expect(read('2024-02-29')).toBe('2024-02-29T00:00:00.0000000Z');
    expect(read('2024-02-29T10:11Z')).toBe('2024-02-29T10:11:00.0000000Z');
    expect(read('2024-02-29T10:11:12Z')).toBe('2024-02-29T10:11:12.0000000Z');
    expect(read('2024-02-29T10:11:12.1234567Z')).toBe('2024-02-29T10:11:12.1234567Z');
    for (const text of [
      '',
      '2023-02-29',
      '2024-02-29T10:11',
      '2024-02-29T25:11Z',
      '2024-1-1',
      '1',
      '2024-02-29T24:01Z',
    ])
      expect(read(text), text).toBeUndefined();
  });

  it('is parsed or refused, whatever it contains', () => {
    const aText = fc.oneof(fc.string(), fc.constantFrom('b', 'c', 'r', '2021-06-08', '2030-01-01', 'sco', '1.2.3.4'));
    const names = ['sv', 'sig', 'ss', 'srt', 'sr', 'sp', 'st', 'se', 'si', 'sip', 'spr', 'sdd', 'ses', 'rscc', 'skoid'];
    const aQuery = fc.dictionary(fc.constantFrom(...names), aText);
    fc.assert(
      fc.property(aQuery, (query) => {
        try {
          parseSas(query, 'blob');
        } catch (error) {
          expect(error).toBeInstanceOf(StorageError);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

function refusal(query: Record<string, string>): StorageError {
  try {
    parseSas(query, 'blob');
  } catch (error) {
    if (error instanceof StorageError) return error;
    throw error;
  }
  throw new Error('it was read');
}

/** Without undefined fields. */
function defined<Fields extends object>(fields: Fields): { [Name in keyof Fields]: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
