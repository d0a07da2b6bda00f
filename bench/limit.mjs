/**
 * The limit of this machine for any server on node:http at one client: the same bytes on the wire, nothing decided, nothing stored.
 * A Put writes its body to a file that has its size already, and syncs it, before it is answered.
 */
import { fdatasync, openSync, write, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

const [folder, port] = process.argv.slice(2);
const FILE_BYTES = 64 << 20;
const PAGE = 4_096;
const body = 'x'.repeat(1_024);
const date = new Date().toUTCString();
const common = [
  ...[
    'Server',
    'limit',
    'x-ms-request-id',
    '00000000-0000-0000-0000-000000000000',
    'Date',
    date,
    'x-ms-version',
    '2025-11-05',
  ],
  ...['Last-Modified', date, 'ETag', '"0x8DE000000000000"'],
];
const got = [
  ...['Content-Type', 'application/octet-stream', 'x-ms-creation-time', date, 'x-ms-blob-type', 'BlockBlob'],
  ...['x-ms-lease-status', 'unlocked', 'x-ms-lease-state', 'available', 'x-ms-server-encrypted', 'true'],
  ...['Accept-Ranges', 'bytes', 'Content-MD5', '1B2M2Y8AsgTpgAmY7PhCfg==', 'Content-Length', String(body.length)],
];
const file = openSync(join(folder, 'limit'), 'w');
for (let at = 0; at < FILE_BYTES; at += 1 << 20) writeSync(file, Buffer.alloc(1 << 20));
let place = 0;

createServer((incoming, outgoing) => {
  outgoing.sendDate = false;
  if (incoming.method === 'PUT' && incoming.headers['x-ms-blob-type']) {
    incoming.on('data', (bytes) => {
      place = (place + PAGE) % FILE_BYTES;
      write(file, bytes, 0, bytes.length, place, () =>
        fdatasync(file, () => outgoing.writeHead(201, [...common, 'Content-Length', '0']).end()),
      );
    });
    return;
  }
  incoming.resume();
  if (incoming.method === 'PUT') outgoing.writeHead(201, [...common, 'Content-Length', '0']).end();
  else {
    outgoing.writeHead(200, [...common, ...got]);
    outgoing.write(body, 'latin1');
    process.nextTick(() => outgoing.end());
  }
}).listen(Number(port), '127.0.0.1');
