import type { BlobServiceProperties } from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import {
  elementOf,
  expectError,
  expectRefusal,
  onEveryEngine,
  onLmdb,
  type RawRequest,
} from '../support/test-server.ts';

const PATH = '/?restype=service&comp=properties';
const document = (xml: string) => `<StorageServiceProperties>${xml}</StorageServiceProperties>`;
const cors = (rules: string) => document(`<Cors>${rules}</Cors>`);

const rule = (parts: Record<string, string | undefined> = {}): string => {
  const all = {
    AllowedOrigins: 'http://one.example',
    AllowedMethods: 'GET',
    AllowedHeaders: '',
    ExposedHeaders: '',
    MaxAgeInSeconds: '5',
    ...parts,
  };
  const xml = Object.entries(all).map(([name, text]) => (text === undefined ? '' : `<${name}>${text}</${name}>`));
  return `<CorsRule>${xml.join('')}</CorsRule>`;
};
const many = (count: number, text: (at: number) => string) => Array.from({ length: count }, (_, at) => text(at));
const off = { enabled: false };
const noLogging = { version: '1.0', read: false, write: false, deleteProperty: false, retentionPolicy: off };

describe('Get Blob Service Properties', () => {
  onEveryEngine((running) => {
    it('returns the settings: all off at first', async () => {
      const properties = await running.service.getProperties();
      const metrics = { version: '1.0', enabled: false, retentionPolicy: { enabled: false } };
      expect(properties).toMatchObject({
        blobAnalyticsLogging: {
          version: '1.0',
          read: false,
          write: false,
          deleteProperty: false,
          retentionPolicy: { enabled: false },
        },
        hourMetrics: metrics,
        minuteMetrics: metrics,
        cors: [],
        deleteRetentionPolicy: { enabled: false },
        staticWebsite: { enabled: false },
      });
      const answer = await running.request('GET', PATH);
      expect(answer.text.startsWith('\ufeff<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties>')).toBe(
        true,
      );
    });

    it('mentions permanent deletion to versions that know it', async () => {
      const asked = async (version: string) =>
        (await running.request('GET', PATH, { headers: { 'x-ms-version': version } })).text;
      expect(elementOf(await asked('2020-02-10'), 'AllowPermanentDelete')).toBe('false');
      expect(elementOf(await asked('2019-12-12'), 'AllowPermanentDelete')).toBeUndefined();
    });
  });
});

describe('Set Blob Service Properties', () => {
  onEveryEngine((running) => {
    it('leaves every part that is not there as it is', async () => {
      const service = running.service;
      const one = {
        allowedOrigins: 'http://one.example',
        allowedMethods: 'GET,PUT',
        allowedHeaders: 'x-ms-*,content-type',
        exposedHeaders: '',
        maxAgeInSeconds: 0,
      };
      const parts: BlobServiceProperties[] = [
        { defaultServiceVersion: '2020-02-10' },
        { hourMetrics: { version: '1.0', enabled: false, retentionPolicy: off } },
        { minuteMetrics: { version: '1.0', enabled: false, retentionPolicy: off } },
        { blobAnalyticsLogging: { ...noLogging, version: '2.0' } },
        { cors: [one] },
        { deleteRetentionPolicy: { enabled: true, days: 7 } },
        { deleteRetentionPolicy: off },
        { staticWebsite: off },
      ];
      for (const part of parts) expect((await service.setProperties(part))._response.status).toBe(202);
      const set = await service.getProperties();
      expect(set).toMatchObject({
        ...Object.assign({}, ...parts),
        cors: [{ ...one, allowedHeaders: 'content-type,x-ms-*' }],
      });
      // A document that was read can be written back, which changes nothing.
      await service.setProperties(set);
      const again = await service.getProperties();
      expect({ ...again, ...noise }).toEqual({ ...set, ...noise });
      await service.setProperties({ cors: [] });
      expect((await service.getProperties()).cors).toEqual([]);
      expect((await service.getProperties()).defaultServiceVersion).toBe('2020-02-10');
    });

    it('gives requests without a version the one that is set', async () => {
      const container = await running.newContainer();
      const ask = (path: string, request: RawRequest = {}) =>
        running.request('GET', `/${container.containerName}${path}`, {
          ...request,
          headers: { 'x-ms-version': undefined, ...request.headers },
        });
      await running.service.setProperties({ defaultServiceVersion: '2019-02-02' });
      const answer = await ask('?restype=container');
      expect([answer.status, answer.headers['x-ms-version']]).toEqual([200, '2019-02-02']);
      expect((await ask('?restype=container', { headers: { 'x-ms-version': '2018-03-28' } })).headers).toMatchObject({
        'x-ms-version': '2018-03-28',
      });
      const anonymous = await ask('/none', { unsigned: true });
      expect([anonymous.status, anonymous.headers['x-ms-version']]).toEqual([404, '2019-02-02']);
      await running.service.setProperties({ defaultServiceVersion: '2025-01-05' });
      expect((await ask('/none', { unsigned: true })).status).toBe(401);
    });

    it('refuses what would have no effect, and changes nothing then', async () => {
      const before = (await running.service.getProperties()).defaultServiceVersion;
      const set = (properties: BlobServiceProperties) =>
        expectRefusal(
          running.service.setProperties({ ...properties, defaultServiceVersion: '2015-04-05' }),
          501,
          'NotImplemented',
        );
      await set({ staticWebsite: { enabled: true, indexDocument: 'index.html' } });
      expect((await running.service.getProperties()).defaultServiceVersion).toBe(before);
    });

    it('keeps every part when parts are set at the same moment', async () => {
      for (let round = 0; round < 20; round++) {
        const version = `20${String(10 + round)}-04-05`;
        const logging = `${1 + (round % 2)}.0`;
        const part = (properties: BlobServiceProperties) => running.service.setProperties(properties);
        await Promise.all([
          part({ defaultServiceVersion: version }),
          part({ blobAnalyticsLogging: { ...noLogging, version: logging } }),
          running.request('PUT', PATH, { body: cors(rule({ MaxAgeInSeconds: String(round) })) }),
        ]);
        const set = await running.service.getProperties();
        expect([set.defaultServiceVersion, set.blobAnalyticsLogging?.version]).toEqual([version, logging]);
        expect(set.cors?.map(({ maxAgeInSeconds }) => maxAgeInSeconds)).toEqual([round]);
      }
    });
  });

  onLmdb((running) => {
    const put = (body: string) => running.request('PUT', PATH, { body });
    const retention = (days: string) =>
      `<DeleteRetentionPolicy><Enabled>true</Enabled><Days>${days}</Days></DeleteRetentionPolicy>`;
    const metrics = (parts: string) => document(`<HourMetrics>${parts}</HourMetrics>`);
    const noRetention = '<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>';

    const refused: [what: string, body: string, code: string][] = [
      ['nothing', '', 'InvalidXmlDocument'],
      ['what is no XML', 'text', 'InvalidXmlDocument'],
      ['another document', '<SignedIdentifiers />', 'InvalidXmlDocument'],
      ['an unknown part', document('<Extra />'), 'InvalidXmlDocument'],
      ['a part twice', document('<Cors /><Cors />'), 'InvalidXmlDocument'],
      ['a retention of 0 days', document(retention('0')), 'InvalidXmlDocument'],
      ['a retention of 366 days', document(retention('366')), 'InvalidXmlDocument'],
      ['a retention of some days', document(retention('some')), 'InvalidXmlNodeValue'],
      [
        'a retention of no days',
        document('<DeleteRetentionPolicy><Enabled>true</Enabled></DeleteRetentionPolicy>'),
        'MissingRequiredXmlNode',
      ],
      [
        'a website that may be',
        document('<StaticWebsite><Enabled>maybe</Enabled></StaticWebsite>'),
        'InvalidXmlNodeValue',
      ],
      ['an empty website', document('<StaticWebsite />'), 'MissingRequiredXmlNode'],
      ['empty logging', document('<Logging />'), 'MissingRequiredXmlNode'],
      ['metrics without a version', metrics(`<Enabled>false</Enabled>${noRetention}`), 'MissingRequiredXmlNode'],
      [
        'metrics of an unknown version',
        metrics(`<Version>9.0</Version><Enabled>false</Enabled>${noRetention}`),
        'InvalidXmlNodeValue',
      ],
      [
        'metrics without a retention policy',
        metrics('<Version>1.0</Version><Enabled>false</Enabled>'),
        'MissingRequiredXmlNode',
      ],
      [
        'metrics that do not say of what',
        metrics(`<Version>1.0</Version><Enabled>true</Enabled>${noRetention}`),
        'MissingRequiredXmlNode',
      ],
      [
        'a version that is none',
        document('<DefaultServiceVersion>soon</DefaultServiceVersion>'),
        'InvalidXmlNodeValue',
      ],
      ['an empty version', document('<DefaultServiceVersion />'), 'InvalidXmlNodeValue'],
      ['six rules', cors(rule().repeat(6)), 'InvalidXmlDocument'],
      ['something else than rules', cors('<Rule />'), 'InvalidXmlDocument'],
      ['a rule with an unknown part', cors(rule({ AllowedPorts: '80' })), 'InvalidXmlDocument'],
      ['a rule without origins', cors(rule({ AllowedOrigins: undefined })), 'MissingRequiredXmlNode'],
      ['a rule with no origin', cors(rule({ AllowedOrigins: ' , ' })), 'InvalidXmlNodeValue'],
      ['a rule without methods', cors(rule({ AllowedMethods: undefined })), 'MissingRequiredXmlNode'],
      ['a rule with no method', cors(rule({ AllowedMethods: '' })), 'InvalidXmlNodeValue'],
      ['a rule for an unknown method', cors(rule({ AllowedMethods: 'GET,FETCH' })), 'InvalidXmlNodeValue'],
      ['a rule without an age', cors(rule({ MaxAgeInSeconds: undefined })), 'MissingRequiredXmlNode'],
      ['a rule of a negative age', cors(rule({ MaxAgeInSeconds: '-1' })), 'InvalidXmlNodeValue'],
      ['a rule of an age that is no number', cors(rule({ MaxAgeInSeconds: 'old' })), 'InvalidXmlNodeValue'],
      ['a rule of an endless age', cors(rule({ MaxAgeInSeconds: '2147483648' })), 'InvalidXmlNodeValue'],
      ['65 origins', cors(rule({ AllowedOrigins: many(65, (at) => `a:${at}`).join() })), 'InvalidXmlDocument'],
      ['an origin of 257 characters', cors(rule({ AllowedOrigins: 'o'.repeat(257) })), 'InvalidXmlDocument'],
      ['a star inside an origin', cors(rule({ AllowedOrigins: 'https://exa*.com' })), 'InvalidXmlNodeValue'],
      ['65 headers', cors(rule({ AllowedHeaders: many(65, (at) => `h${at}`).join() })), 'InvalidXmlDocument'],
      ['3 beginnings of headers', cors(rule({ ExposedHeaders: 'a*,b*,c*' })), 'InvalidXmlDocument'],
      ['a header of 257 characters', cors(rule({ ExposedHeaders: 'h'.repeat(257) })), 'InvalidXmlDocument'],
      ['a star inside a header', cors(rule({ ExposedHeaders: 'x-*-y' })), 'InvalidXmlNodeValue'],
      ['a header that HTTP cannot carry', cors(rule({ ExposedHeaders: 'x ms' })), 'InvalidXmlNodeValue'],
      [
        'rules of more than 2 KiB',
        cors(rule({ AllowedOrigins: many(9, (at) => `${at}${'o'.repeat(239)}`).join() })),
        'InvalidXmlDocument',
      ],
    ];
    it.each(refused)('refuses %s', async (_, body, code) => {
      expectError(await put(body), 400, code);
    });

    it('accepts everything within the limits', async () => {
      const full = rule({
        AllowedOrigins: many(64, (at) => `o${at}`).join(),
        AllowedMethods: 'delete,GET,HEAD,MERGE,POST,OPTIONS,PUT,PATCH',
        AllowedHeaders: [...many(64, (at) => `h${at}`), 'x-*', '*'].join(),
        ExposedHeaders: 'h'.repeat(256),
        MaxAgeInSeconds: '2147483647',
      });
      expect((await put(cors(full + rule().repeat(4)))).status).toBe(202);
      expect((await running.service.getProperties()).cors).toHaveLength(5);
      const star = rule({ AllowedOrigins: 'https://*.example.com,*', AllowedHeaders: undefined });
      expect((await put(cors(star))).status).toBe(202);
    });

    it('accepts True and False, as Python writes them', async () => {
      const body = document('<DeleteRetentionPolicy><Enabled>False</Enabled></DeleteRetentionPolicy>');
      expect((await put(body)).status).toBe(202);
    });

    it('reports the position of the fault, at the end of the element', async () => {
      const answer = await put(`<StorageServiceProperties>\n${retention('0')}</StorageServiceProperties>`);
      expect(elementOf(answer.text, 'LineNumber')).toBe('2');
      expect(elementOf(answer.text, 'LinePosition')).toBe(String(retention('0').lastIndexOf('/') + 2));
      expect(elementOf(answer.text, 'Reason')).toMatch(/^Retention days must be greater than 0/);
      expectError(await put(cors(rule({ AllowedMethods: 'GET,FETCH' }))), 400, 'InvalidXmlNodeValue', {
        XmlNodeName: 'AllowedMethods',
        XmlNodeValue: 'GET,FETCH',
      });
    });
  });
});

describe('Logging and metrics', () => {
  onEveryEngine((running) => {
    const kept = (days: number) => ({ enabled: true, days });
    const logging = { version: '1.0', read: true, write: true, deleteProperty: true, retentionPolicy: kept(5) };
    const metrics = { version: '1.0', enabled: true, includeAPIs: true, retentionPolicy: kept(5) };
    const services = {
      blob: () => ({ client: running.service, log: 'blobAnalyticsLogging' }),
      queue: () => ({ client: running.queues, log: 'queueAnalyticsLogging' }),
      table: () => ({ client: running.tables, log: 'logging' }),
    };
    const names = ['blob', 'queue', 'table'] as const;

    it.each(names)('of the %s service are said as they were set, each part for itself', async (name) => {
      const { client, log } = services[name]();
      // One of the three SDKs calls it otherwise.
      const ofSdk = ({ deleteProperty, ...rest }: typeof noLogging | typeof logging) =>
        name === 'table' ? { ...rest, delete: deleteProperty } : { ...rest, deleteProperty };
      const set = (part: object) => client.setProperties(part as never);
      await set({ [log]: ofSdk(logging) });
      expect(await client.getProperties()).toMatchObject({
        [log]: ofSdk(logging),
        hourMetrics: { enabled: false, retentionPolicy: off },
      });
      await set({ hourMetrics: metrics });
      await set({ minuteMetrics: { ...metrics, includeAPIs: false, retentionPolicy: off } });
      expect(await client.getProperties()).toMatchObject({
        [log]: ofSdk(logging),
        hourMetrics: metrics,
        minuteMetrics: { version: '1.0', enabled: true, includeAPIs: false, retentionPolicy: off },
      });
      await set({ [log]: { ...ofSdk(noLogging), retentionPolicy: kept(365) } });
      await set({ hourMetrics: { version: '1.0', enabled: false, retentionPolicy: kept(1) } });
      const properties: { hourMetrics?: { includeAPIs?: boolean } } = await client.getProperties();
      expect(properties).toMatchObject({
        [log]: { ...ofSdk(noLogging), retentionPolicy: kept(365) },
        hourMetrics: { version: '1.0', enabled: false, retentionPolicy: kept(1) },
        minuteMetrics: { enabled: true },
      });
      expect(properties.hourMetrics?.includeAPIs).toBeUndefined();
      await set({ minuteMetrics: { version: '1.0', enabled: false, retentionPolicy: off } });
    });

    it('knows the second version of the log for blobs and queues only', async () => {
      const body = document(
        '<Logging><Version>2.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>' +
          '<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>',
      );
      const status = async (of: 'blob' | 'queue' | 'table') =>
        (await running.request('PUT', PATH, { body, of })).status;
      expect([await status('blob'), await status('queue'), await status('table')]).toEqual([202, 202, 400]);
    });
  });
});

/** Headers that differ between any two answers. */
const noise = { _response: undefined, requestId: undefined, clientRequestId: undefined, date: undefined };
