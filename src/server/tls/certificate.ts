/** Loads the certificate that --cert names: PEM with a key, or a PFX. Every fault is a StartError of one line. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Duplex } from 'node:stream';
import { createSecureContext, TLSSocket } from 'node:tls';
import type { TlsOptions } from '../../rest/http/tls.ts';
import { type CertificateFiles, StartError } from '../config.ts';
import type { Authority } from '../public.ts';

export interface ServerCertificate {
  readonly tls: TlsOptions;
  /** For the log. */
  readonly warnings: readonly string[];
  /** The authority that clients have to trust, if the server has made it. */
  readonly authority?: Authority;
}

export function readCertificate(files: CertificateFiles, now: Date): ServerCertificate {
  const bytes = readFlagFile('--cert', files.cert);
  return bytes.includes('-----BEGIN ') ? readPem(files, bytes.toString(), now) : readPfx(files, bytes, now);
}

function readPem({ cert, key, password }: CertificateFiles, pem: string, now: Date): ServerCertificate {
  const keyPem = key === undefined ? pem : readFlagFile('--key', key).toString();
  if (!keyPem.includes('PRIVATE KEY-----')) {
    throw new StartError(
      key === undefined
        ? `There is no private key in ${cert}: name its file by --key.`
        : `There is no private key in PEM in ${key}: --key is a file with -----BEGIN PRIVATE KEY-----.`,
    );
  }
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(pem);
  } catch {
    throw new StartError(`There is no certificate in ${cert} that can be read: --cert is PEM, or a PFX.`);
  }
  const privateKey = readPrivateKey(keyPem, key ?? cert, password);
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new StartError(
      `The key in ${key ?? cert} is not that of the certificate in ${cert}: in a chain, the server's own certificate comes first.`,
    );
  }
  // OpenSSL refuses some keys and signatures that can be parsed.
  const tls = { cert: pem, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
  try {
    createSecureContext(tls);
  } catch (error) {
    throw new StartError(`The certificate in ${cert} cannot be used: ${(error as Error).message}.`);
  }
  return { tls, warnings: validityWarnings(certificate, cert, now) };
}

function readPrivateKey(pem: string, file: string, password: string | undefined): KeyObject {
  try {
    return createPrivateKey({ key: pem, ...(password !== undefined && { passphrase: password }) });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (/ENCRYPTED/.test(pem)) {
      throw new StartError(
        password === undefined
          ? `The key in ${file} is encrypted: give its password by --pwd.`
          : `The key in ${file} cannot be decrypted: is --pwd its password?`,
      );
    }
    throw new StartError(`The key in ${file} cannot be read (${code}).`);
  }
}

function readPfx({ cert, key, password }: CertificateFiles, pfx: Buffer, now: Date): ServerCertificate {
  if (key !== undefined) {
    throw new StartError(`${cert} is not PEM, and a PFX holds its key: leave --key out, or name a PEM file by --cert.`);
  }
  const tls = { pfx, ...(password !== undefined && { passphrase: password }) };
  try {
    const secureContext = createSecureContext(tls);
    const socket = new TLSSocket(new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() }), {
      isServer: true,
      secureContext,
    });
    const certificate = socket.getX509Certificate();
    socket.destroy();
    return { tls, warnings: certificate ? validityWarnings(certificate, cert, now) : [] };
  } catch (error) {
    throw new StartError(describePfxError(cert, password, error as NodeJS.ErrnoException));
  }
}

function describePfxError(
  file: string,
  password: string | undefined,
  { message, code }: NodeJS.ErrnoException,
): string {
  if (/mac verify failure|invalid password/i.test(message)) {
    return password === undefined
      ? `${file} has a password: give it by --pwd.`
      : `${file} cannot be opened: is --pwd its password?`;
  }
  if (code === 'ERR_CRYPTO_UNSUPPORTED_OPERATION') {
    return `${file} is encrypted in an old way that OpenSSL 3 does not read: export it again, with AES-256.`;
  }
  if (code === 'ERR_CRYPTO_OPERATION_FAILED') return `${file} lacks the certificate or its private key.`;
  return `There is no certificate in ${file} that can be read: --cert is PEM, or a PFX.`;
}

function readFlagFile(flag: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const advice = code === 'EACCES' ? ': make it readable for the user that runs the server' : '';
    throw new StartError(`Cannot read the file of ${flag}, ${file} (${code})${advice}.`);
  }
}

function validityWarnings({ validFrom, validTo }: X509Certificate, file: string, now: Date): string[] {
  if (new Date(validTo) <= now) return [`The certificate in ${file} expired on ${validTo}: clients will refuse it.`];
  if (new Date(validFrom) > now) return [`The certificate in ${file} is valid from ${validFrom} only.`];
  return [];
}
