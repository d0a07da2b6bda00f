import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { hasExactNames, makeAuthority, makeCertificate, permits } from './x509.ts';

const DAY_MILLISECONDS = 86_400_000;
const validity = { from: new Date(Date.now() - DAY_MILLISECONDS), until: new Date(Date.now() + 90 * DAY_MILLISECONDS) };
const names = ['localhost', '*.blob.localhost', 'box.example', '127.0.0.1', '::1', '192.0.2.7', 'fe80::1:2'];
const authority = makeAuthority('An authority', names, validity);
const opened = { certificate: new X509Certificate(authority.certificate), key: createPrivateKey(authority.key) };

/** The error of a TLS handshake with a client that trusts only this authority; undefined: none. */
async function handshake(
  certificateNames: readonly string[],
  host: string,
  at = validity,
): Promise<string | undefined> {
  const { certificate, key } = makeCertificate(opened, certificateNames, at);
  const server = createServer({ cert: certificate + authority.certificate, key });
  onTestFinished(() => void server.close());
  server.on('tlsClientError', () => {});
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port, ca: authority.root, servername: host });
  try {
    await once(socket, 'secureConnect');
    return undefined;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'UNSPECIFIED' ? message : code;
  } finally {
    socket.destroy();
  }
}

describe('An authority', () => {
  it('is a self-signed root, and an issuer below it, which alone has a key', () => {
    const { certificate, key } = opened;
    const root = new X509Certificate(authority.root);
    for (const each of [root, certificate]) {
      expect(each.ca).toBe(true);
      expect(each.verify(root.publicKey)).toBe(true);
      expect(each.checkIssued(root)).toBe(true);
      expect(each.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
    }
    expect([certificate.checkPrivateKey(key), root.checkPrivateKey(key)]).toEqual([true, false]);
    expect(root.subject).toBe('O=Holdfast\nCN=An authority');
    expect(certificate.subject).toBe('O=Holdfast\nCN=An authority issuer');
  });

  it.each([0, 1])('is constrained in both: %s', (which) => {
    const each = [opened.certificate, new X509Certificate(authority.root)][which]!;
    expect(permits(each, 'localhost')).toBe(true);
    expect(permits(each, 'example.com')).toBe(false);
  });

  it.each(['localhost', 'a.blob.localhost', 'box.example'])('can sign for %s', async (host) => {
    expect(await handshake(names, host)).toBeUndefined();
  });

  it.each(['example.com', 'localhost.example.com', '192.0.2.8', 'fe80::1:3'])('cannot sign for %s', async (name) => {
    expect(permits(opened.certificate, name)).toBe(false);
    expect(await handshake(['localhost', name], 'localhost')).toBe('permitted subtree violation');
  });

  it('knows its name constraints', () => {
    for (const name of [...names, 'any.localhost', '127.1.2.3']) expect(permits(opened.certificate, name)).toBe(true);
    for (const name of ['notlocalhost', '128.0.0.1', '::2', 'other.example']) {
      expect(permits(opened.certificate, name)).toBe(false);
    }
  });
});

describe('A certificate', () => {
  it('is valid for its names only', async () => {
    expect(await handshake(['localhost'], 'box.example')).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
  });

  it('is valid in its time only', async () => {
    const over = { from: validity.from, until: new Date(Date.now() - 1_000) };
    expect(await handshake(names, 'localhost', over)).toBe('CERT_HAS_EXPIRED');
    const later = { from: new Date(Date.now() + DAY_MILLISECONDS), until: new Date('2051-01-01T00:00:00Z') };
    expect(await handshake(names, 'localhost', later)).toBe('CERT_NOT_YET_VALID');
  });

  it('can be valid beyond 2049, from where on years have four digits', () => {
    const { certificate } = makeCertificate(opened, names, {
      from: new Date(0),
      until: new Date('2051-02-03T04:05:06Z'),
    });
    const { validFrom, validTo } = new X509Certificate(certificate);
    expect([validFrom, validTo]).toEqual(['Jan  1 00:00:00 1970 GMT', 'Feb  3 04:05:06 2051 GMT']);
  });

  it('has the names that it was made for, all kinds of them, and a serial number of its own', () => {
    const made = [1, 2].map(() => new X509Certificate(makeCertificate(opened, names, validity).certificate));
    expect(made[0]!.subjectAltName).toBe(
      'DNS:localhost, DNS:*.blob.localhost, DNS:box.example, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:192.0.2.7, IP Address:FE80:0:0:0:0:0:1:2',
    );
    expect(made[0]!.ca).toBe(false);
    expect(made[0]!.serialNumber).not.toBe(made[1]!.serialNumber);
    expect(hasExactNames(made[0]!, names)).toBe(true);
    expect(hasExactNames(made[0]!, names.slice(1))).toBe(false);
    expect(hasExactNames(made[0]!, [...names, 'more'])).toBe(false);
  });
});
