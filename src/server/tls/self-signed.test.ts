import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { StartError } from '../config.ts';
import { ensureSelfSignedCertificate, trustInstructions } from './self-signed.ts';

const now = new Date('2026-05-01T12:00:00Z');
const days = (count: number) => new Date(now.getTime() + count * 86_400_000);

function newFolder(): string {
  const parent = mkdtempSync(join(tmpdir(), 'holdfast-'));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  return join(parent, 'tls');
}

function made(folder: string | undefined, { at = now, host = '127.0.0.1', machine = 'Box' } = {}) {
  const { tls, authority, warnings } = ensureSelfSignedCertificate({ folder, hosts: [host], machine, now: at });
  if (!('cert' in tls)) throw new Error('not in PEM');
  const issuer = new X509Certificate(tls.cert.slice(tls.cert.indexOf('-----BEGIN', 1)));
  return { certificate: new X509Certificate(tls.cert), issuer, key: tls.key, authority: authority!, warnings };
}

describe('The self-signed certificate', () => {
  it('names all hosts that the server can be reached by, and is signed by its authority', () => {
    const { certificate, issuer, authority, warnings } = made(newFolder(), { host: 'files.example' });
    expect(certificate.subjectAltName).toBe(
      'DNS:localhost, DNS:*.localhost, DNS:*.blob.localhost, DNS:*.queue.localhost, DNS:*.table.localhost, DNS:*.file.localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, DNS:box, DNS:files.example',
    );
    expect(certificate.verify(issuer.publicKey)).toBe(true);
    expect(issuer.verify(new X509Certificate(authority.certificate).publicKey)).toBe(true);
    expect(warnings).toEqual([]);
  });

  it.each(['0.0.0.0', '::', 'localhost', 'no_name', ''])('does not name a host %j, or not twice', (host) => {
    expect(made(undefined, { host }).certificate.subjectAltName).toBe(made(undefined).certificate.subjectAltName);
  });

  it('is kept, with keys that only their owner can read', () => {
    const folder = newFolder();
    const [first, second] = [made(folder), made(folder, { at: days(300) })];
    expect(second).toEqual(first);
    expect(readdirSync(folder).sort()).toEqual([
      'ca.pem',
      'certificate.pem',
      'issuer-key.pem',
      'issuer.pem',
      'key.pem',
    ]);
    expect(first.authority.file).toBe(join(folder, 'ca.pem'));
    expect(readFileSync(first.authority.file!, 'utf8')).toBe(first.authority.certificate);
    if (process.platform === 'win32') return;
    for (const name of ['issuer-key.pem', 'key.pem']) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  });

  it('is renewed a year before it expires, by the same authority', () => {
    const folder = newFolder();
    const first = made(folder);
    const later = made(folder, { at: days(401) });
    expect(later.certificate.raw).not.toEqual(first.certificate.raw);
    expect(new Date(later.certificate.validTo)).toEqual(days(401 + 800));
    expect(later.authority).toEqual(first.authority);
  });

  it('is renewed by the same authority when its names change', () => {
    const folder = newFolder();
    const first = made(folder, { host: 'files.example' });
    const second = made(folder, { host: '127.0.0.1' });
    expect(second.certificate.subjectAltName).not.toContain('files.example');
    expect(second.authority).toEqual(first.authority);
  });

  it('leaves out a name outside of the constraints of its authority, with a warning', () => {
    const folder = newFolder();
    made(folder);
    const { certificate, warnings } = made(folder, { machine: 'other' });
    expect(certificate.subjectAltName).not.toContain('other');
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('does not name other');
  });

  it.each(['certificate.pem', 'key.pem'])('is replaced where %s is missing or damaged', (name) => {
    const folder = newFolder();
    const first = made(folder);
    writeFileSync(join(folder, name), 'no PEM');
    const second = made(folder);
    rmSync(join(folder, name));
    const third = made(folder);
    expect(new Set([first, second, third].map(({ certificate }) => certificate.fingerprint256)).size).toBe(3);
    expect(third.authority).toEqual(first.authority);
  });

  it('is not replaced if its authority, which clients trust, is damaged or has lost its key', () => {
    const folder = newFolder();
    made(folder);
    for (const damage of [
      () => rmSync(join(folder, 'issuer-key.pem')),
      () => writeFileSync(join(folder, 'issuer-key.pem'), readFileSync(join(folder, 'key.pem'))),
      () => writeFileSync(join(folder, 'ca.pem'), ''),
    ]) {
      damage();
      expect(() => made(folder)).toThrow(StartError);
    }
  });

  it('has a new authority if a start was killed before the first was complete', () => {
    const folder = newFolder();
    const first = made(folder);
    rmSync(join(folder, 'ca.pem'));
    const { certificate, issuer, authority } = made(folder);
    expect(authority.certificate).not.toBe(first.authority.certificate);
    expect(certificate.verify(issuer.publicKey)).toBe(true);
    expect(issuer.verify(new X509Certificate(authority.certificate).publicKey)).toBe(true);
  });

  it('has a new authority, with a warning, when the old one has expired', () => {
    const folder = newFolder();
    const first = made(folder);
    const { authority, warnings } = made(folder, { at: days(3_650) });
    expect(authority.certificate).not.toBe(first.authority.certificate);
    expect(warnings[0]).toContain('expired');
    expect(made(folder, { at: days(3_650) }).authority).toEqual(authority);
  });

  it('leaves no file in memory, and its instructions say how to get the authority', () => {
    const { authority } = made(undefined);
    expect(authority.file).toBeUndefined();
    const text = trustInstructions(authority, 'https://127.0.0.1:1');
    expect(text).toContain('curl -k -o holdfast-ca.pem https://127.0.0.1:1/_holdfast/certificate');
    expect(text).toContain('NODE_EXTRA_CA_CERTS=holdfast-ca.pem');
  });
});
