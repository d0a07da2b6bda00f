/**
 * node test/malformed-packets/record.mjs: records what smbclient, impacket and smbtorture send to a server, and writes one packet of each
 * shape to corpus.jsonl.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { debianPython } from '../../scripts/debian-packages.mjs';
import { startSamba } from '../support/samba-server.mjs';
import { startHoldfastSmb } from '../support/smb-target.mjs';
import { startRecordingProxy } from './recording-proxy.mjs';

const PACKET_BYTES_MAX = 2_048;
const OF_ONE_SHAPE_MAX = 3;
const SMB2 = 0x424d53fe;

const server = await (process.argv.includes('--samba') ? startSamba() : startHoldfastSmb());
/** @type {Map<string, Set<string>>} */
const shapes = new Map();
const proxy = await startRecordingProxy(server.port, (packet) => {
  if (packet.length > PACKET_BYTES_MAX || packet.readUInt32LE(0) === 0x424d53fd) return;
  const known = shapes.get(shapeOf(packet)) ?? new Set();
  shapes.set(shapeOf(packet), known);
  if (known.size < OF_ONE_SHAPE_MAX) known.add(packet.toString('hex'));
});
const folder = mkdtempSync(join(tmpdir(), 'holdfast-record-'));
writeFileSync(join(folder, 'file'), 'some text');
const credentials = ['-p', String(proxy.port), '-U', `${server.user}%${server.password}`];
const address = `//127.0.0.1/${server.share}`;
const commands =
  'mkdir d; cd d; put file; ls; allinfo file; rename file other; get other back; setmode other +r; setmode other -r; del other; cd ..; rmdir d; du';

for (const dialect of ['SMB2_10', 'SMB3_00', 'SMB3_02', 'SMB3_11']) {
  await run('smbclient', [address, ...credentials, '-m', dialect, '--client-protection=off', '-c', commands]);
}
await run('smbclient', ['-L', '//127.0.0.1', ...credentials]);
await run(debianPython, [
  fileURLToPath(new URL('impacket-session.py', import.meta.url)),
  String(proxy.port),
  server.user,
  server.password,
  server.share,
]);
for (const suite of [
  'create',
  'getinfo',
  'setinfo',
  'dir',
  'rename',
  'read',
  'rw',
  'compound',
  'ioctl',
  'lock',
  'notify',
  'lease.request',
  'durable-open.open-lease',
  'durable-v2-open.open-lease',
  'session.reauth1',
  'twrp',
]) {
  await run('smbtorture', [address, ...credentials, '--client-protection=off', `smb2.${suite}`]);
}
proxy.close();
await server.stop();
rmSync(folder, { recursive: true });
const lines = [...shapes].flatMap(([shape, packets]) => [...packets].map((hex) => JSON.stringify({ shape, hex })));
writeFileSync(new URL('corpus.jsonl', import.meta.url), `${lines.join('\n')}\n`);
console.log(`${lines.length} packets of ${shapes.size} shapes`);

async function run(file, words) {
  const child = spawn(file, words, { cwd: folder, stdio: 'ignore', timeout: 60_000 });
  await once(child, 'close');
}

/** Commands of a compound, and what tells their variants apart: an information class, a control code, a create context. */
function shapeOf(packet) {
  if (packet.readUInt32LE(0) !== SMB2) return 'smb1';
  const parts = [];
  for (let at = 0; ; ) {
    const command = packet.readUInt16LE(at + 12);
    parts.push(`${command}${variantOf(command, packet.subarray(at + 64))}`);
    const next = packet.readUInt32LE(at + 20);
    if (next === 0) return parts.join('+');
    at += next;
  }
}

function variantOf(command, body) {
  if (command === 5) return `:${body.readUInt32LE(36)}:${body.readUInt32LE(52) === 0 ? '' : 'contexts'}`;
  if (command === 11) return `:${body.readUInt32LE(4).toString(16)}`;
  if (command === 14 || command === 15) return `:${body.readUInt8(2)}`;
  if (command === 16 || command === 17) return `:${body.readUInt8(2)}:${body.readUInt8(3)}`;
  return '';
}
