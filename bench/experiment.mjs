/**
 * A minimal storage service: node:http, an HMAC per request, hand-written routes, lmdb with fdatasync before each answer. No leases,
 * conditions, ranges, types, limits or errors. Its ratio to Azurite shows which targets are realistic on this machine.
 */
import { createHash, createHmac, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { open } from 'lmdb';
import { accountKey } from './http-client.mjs';

const [folder, ...ports] = process.argv.slice(2);
const key = Buffer.from(accountKey, 'base64');
const db = open({ path: folder, overlappingSync: false, pageSize: 8192, encoding: 'msgpack' });
const common = () => [
  ...['Server', 'experiment', 'x-ms-request-id', randomUUID(), 'x-ms-version', '2025-01-05'],
  ...['Date', new Date().toUTCString()],
];

function isSigned({ method, headers, url }, service) {
  const [path, search = ''] = url.split('?');
  const resource = `/devstoreaccount1${path}`;
  let text;
  if (service === 'table') text = `${method}\n\n${headers['content-type'] ?? ''}\n${headers['x-ms-date']}\n${resource}`;
  else {
    const names = Object.keys(headers).filter((name) => name.startsWith('x-ms-'));
    const canonical = names.sort().map((name) => `${name}:${headers[name]}\n`);
    const query = search === '' ? [] : search.split('&').map((pair) => pair.replace('=', ':'));
    const length = headers['content-length'] === '0' ? '' : (headers['content-length'] ?? '');
    const lines = `${method}\n\n\n${length}\n\n\n\n\n\n\n\n\n${canonical.join('')}${resource}`;
    text = [lines, ...query.map(decodeURIComponent).sort()].join('\n');
  }
  const signature = createHmac('sha256', key).update(text).digest('base64');
  return headers.authorization === `SharedKey devstoreaccount1:${signature}`;
}

/** By service: (method, parts of the path, body) -> [status, body, headers], once it is on disk. */
const services = {
  async blob(method, [container, ...names], body) {
    const name = names.join('/');
    if (name === '') return [method === 'GET' ? 200 : 201];
    if (method === 'PUT') {
      const md5 = createHash('md5').update(body).digest('base64');
      const etag = `"0x${Date.now().toString(16)}"`;
      await db.put(['b', container, name], { body, md5, etag, modified: Date.now() });
      return [201, undefined, ['ETag', etag, 'Content-MD5', md5, 'x-ms-request-server-encrypted', 'true']];
    }
    const found = db.get(['b', container, name]);
    if (!found) return [404];
    const { etag, md5, modified } = found;
    const kind = ['Content-Type', 'application/octet-stream', 'x-ms-blob-type', 'BlockBlob', 'Content-MD5', md5];
    return [200, found.body, ['ETag', etag, 'Last-Modified', new Date(modified).toUTCString(), ...kind]];
  },

  async table(method, [target], body) {
    const text = body.toString();
    if (target === '$batch') {
      const entities = text.split('\r\n\r\n').filter((part) => part.startsWith('{'));
      const parsed = entities.map((part) => JSON.parse(part.slice(0, part.lastIndexOf('}') + 1)));
      await db.transaction(() => {
        for (const each of parsed) insert('filled', each);
      });
      return [
        202,
        parsed.map(() => 'HTTP/1.1 204 No Content\r\n\r\n').join('--c\r\n'),
        ['Content-Type', 'multipart/mixed'],
      ];
    }
    if (method === 'POST' && target !== 'Tables') {
      const parsed = JSON.parse(text);
      await db.transaction(() => insert(target, parsed));
      return [204];
    }
    const [, table, partition, row] =
      /^(\w+)\(PartitionKey='(.*)',RowKey='(.*)'\)$/.exec(decodeURIComponent(target)) ?? [];
    if (!table) return method === 'POST' ? [201] : [200, '{"value":[]}'];
    return [200, JSON.stringify(db.get(['e', table, partition, row])), ['Content-Type', 'application/json']];
  },

  async queue(method, [queue, , id], body) {
    if (method === 'PUT' || queue === '') return [method === 'PUT' ? 201 : 200];
    if (method === 'POST') {
      const [, text] = /<MessageText>(.*)<\/MessageText>/.exec(body.toString()) ?? [];
      const message = { id: randomUUID(), text };
      await db.put(['q', queue, Date.now(), message.id], message);
      return [201, `<MessageId>${message.id}</MessageId>`];
    }
    if (method === 'DELETE') {
      await db.transaction(() =>
        db.remove(['q', queue, ...id.split('_').map((part, at) => (at ? part : Number(part)))]),
      );
      return [204];
    }
    const later = Date.now() + 30_000;
    const message = await db.transaction(() => {
      const [first] = db.getRange({ start: ['q', queue], end: ['q', queue, Date.now()], limit: 1 });
      if (!first) return undefined;
      db.remove(first.key);
      db.put(['q', queue, later, first.value.id], first.value);
      return first.value;
    });
    if (!message) return [200, ''];
    const handle = `${later}_${message.id}`;
    return [
      200,
      `<MessageId>${handle}</MessageId><PopReceipt>x</PopReceipt><MessageText>${message.text}</MessageText>`,
    ];
  },
};

function insert(table, entity) {
  const key = ['e', table, entity.PartitionKey, entity.RowKey];
  if (db.get(key) === undefined) db.put(key, { ...entity, Timestamp: new Date().toISOString() });
}

for (const [at, service] of ['blob', 'queue', 'table'].entries()) {
  const run = services[service];
  createServer((incoming, outgoing) => {
    const chunks = [];
    incoming.on('data', (chunk) => chunks.push(chunk));
    incoming.on('end', async () => {
      outgoing.sendDate = false;
      const parts = incoming.url.split('?')[0].split('/').slice(2);
      const [status, body = '', headers = []] = isSigned(incoming, service)
        ? await run(incoming.method, parts, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))
        : [403];
      const bytes = typeof body === 'string' ? Buffer.from(body) : body;
      const length = status === 204 ? [] : ['Content-Length', String(bytes.length)];
      outgoing.writeHead(status, [...common(), ...headers, ...length]).end(bytes);
    });
  }).listen(Number(ports[at]), '127.0.0.1');
}
