/** Operations on the service itself, for every service. Blobs stand for all of them in service-properties, service-stats and cors.test.ts. */
import { describe, expect, it } from 'vitest';
import { type Answer, onEveryEngine, type RawRequest, type Running } from '../support/test-server.ts';

const services = [
  {
    of: 'blob',
    ...{ get: 'Get Blob Service Properties', set: 'Set Blob Service Properties' },
    ...{ stats: 'Get Blob Service Stats', preflight: 'Preflight Blob Request' },
    path: '/c/b',
  },
  {
    of: 'queue',
    ...{ get: 'Get Queue Service Properties', set: 'Set Queue Service Properties' },
    ...{ stats: 'Get Queue Service Stats', preflight: 'Preflight Queue Request' },
    path: '/q/messages',
  },
  {
    of: 'table',
    ...{ get: 'Get Table Service Properties', set: 'Set Table Service Properties' },
    ...{ stats: 'Get Table Service Stats', preflight: 'Preflight Table Request' },
    path: "/t(PartitionKey='p',RowKey='r')",
  },
  {
    of: 'file',
    ...{ get: 'Get File Service Properties', set: 'Set File Service Properties' },
    ...{ stats: undefined, preflight: 'Preflight File Request' },
    path: '/share/folder/file',
  },
] as const;

const PROPERTIES = '/?restype=service&comp=properties';
const ruleFor = (origin: string) =>
  `<Cors><CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>${origin}</AllowedOrigins>` +
  '<AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders>x-ms-request-id</ExposedHeaders>' +
  '<MaxAgeInSeconds>9</MaxAgeInSeconds></CorsRule></Cors>';
const document = (parts: string) => `<StorageServiceProperties>${parts}</StorageServiceProperties>`;

onEveryEngine((running: Running) => {
  describe.each(services)('Of the $of service', ({ of, get, set, stats, preflight, path }) => {
    const origin = `https://${of}.example`;
    const ask = (method: string, target: string, request: RawRequest = {}): Promise<Answer> =>
      running.request(method, target, { ...request, of });
    const from = (site: string): RawRequest => ({
      unsigned: true,
      headers: { Origin: site, 'Access-Control-Request-Method': 'PUT', 'Access-Control-Request-Headers': 'x-ms-date' },
    });

    it(`${set} changes the elements that it names, and ${get} returns them, for this service only`, async () => {
      const changed = await ask('PUT', PROPERTIES, { body: document(ruleFor(origin)) });
      expect([changed.status, changed.text]).toEqual([202, '']);
      const told = await ask('GET', PROPERTIES);
      expect(told.status).toBe(200);
      expect(told.text).toContain(ruleFor(origin));
      expect(told.text).toMatch(/<HourMetrics>.*<MinuteMetrics>.*<Cors>/);
      expect(told.text.includes('<Logging>')).toBe(of !== 'file');
      expect(told.text.includes('StaticWebsite')).toBe(of === 'blob');
      expect(told.text.includes('ProtocolSettings')).toBe(of === 'file');
      const other = await running.request('GET', PROPERTIES, { of: of === 'queue' ? 'table' : 'queue' });
      expect(other.text).not.toContain(origin);
    });

    it.each([
      ['no document', ''],
      ['another root', '<Properties></Properties>'],
      ['what is not closed', '<StorageServiceProperties>'],
      ['an element that does not exist', document('<Colour>red</Colour>')],
      ['a rule without its methods', document('<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins></CorsRule></Cors>')],
    ])(`${set} refuses %s, and changes nothing`, async (_, body) => {
      const before = (await ask('GET', PROPERTIES)).text;
      expect((await ask('PUT', PROPERTIES, { body })).status).toBe(400);
      expect((await ask('GET', PROPERTIES)).text).toBe(before);
    });

    it(`${preflight} is answered from the rules of the service, for every path`, async () => {
      await ask('PUT', PROPERTIES, { body: document(ruleFor(origin)) });
      for (const target of ['/', path, `${path}?comp=acl`]) {
        const answer = await ask('OPTIONS', target, from(origin));
        expect([target, answer.status]).toEqual([target, 200]);
        expect(answer.headers).toMatchObject({
          'access-control-allow-origin': origin,
          'access-control-allow-methods': 'PUT',
          'access-control-allow-headers': 'x-ms-date',
          'access-control-max-age': '9',
        });
      }
      const otherOrigin = await ask('OPTIONS', path, from('https://other.example'));
      expect(otherOrigin.status).toBe(403);
      expect(otherOrigin.text).toContain('CorsPreflightFailure');
    });

    it('sends CORS headers to pages of an allowed origin, with refusals too', async () => {
      await ask('PUT', PROPERTIES, { body: document(ruleFor(origin)) });
      for (const target of [PROPERTIES, '/nothing-of-this-name?comp=metadata']) {
        const answer = await ask('GET', target, { headers: { Origin: origin } });
        expect(answer.headers).toMatchObject({
          'access-control-allow-origin': origin,
          'access-control-expose-headers': 'x-ms-request-id',
        });
      }
    });

    if (stats === undefined) return;
    it(`${stats} reports at the secondary address that replication is live, and is refused at the primary`, async () => {
      expect((await ask('GET', '-secondary/?restype=service&comp=stats')).text).toMatch(
        /<GeoReplication><Status>live<\/Status><LastSyncTime>[^<]+ GMT<\/LastSyncTime><\/GeoReplication>/,
      );
      expect((await ask('GET', '/?restype=service&comp=stats')).status).toBe(400);
    });
  });
});
