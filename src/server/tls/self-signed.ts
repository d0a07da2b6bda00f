/** --https auto: a self-signed CA with a name-constrained issuer, and a server certificate that is renewed at start when due. */
import { createPrivateKey, type KeyObject, randomBytes, X509Certificate } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { makeFolderDurably, writeFileDurably } from '../../base/durable-files.ts';
import { serviceNames } from '../../services/common/names.ts';
import { StartError } from '../config.ts';
import type { Authority } from '../public.ts';
import type { ServerCertificate } from './certificate.ts';
import { hasExactNames, type KeyedCertificate, makeAuthority, makeCertificate, permits } from './x509.ts';

const DAY_MILLISECONDS = 86_400_000;
const AUTHORITY_DAYS = 3_650;
/** macOS accepts at most 825. */
const CERTIFICATE_DAYS = 800;
/** A server that is started at least once a year never presents an expired certificate. */
const RENEW_DAYS = 400;

export interface SelfSignedOptions {
  /** Where the certificates are stored; undefined: in memory. */
  readonly folder: string | undefined;
  /** Where the server listens. */
  readonly hosts: readonly string[];
  readonly machine?: string;
  readonly now: Date;
}

interface CertificateAndKey {
  readonly certificate: X509Certificate;
  readonly key: KeyObject;
}

interface LoadedAuthority extends CertificateAndKey {
  /** In PEM: what clients trust. */
  readonly root: string;
}

/** With a folder, the caller holds the lock of the data directory: no other process writes there. */
export function ensureSelfSignedCertificate({
  folder,
  hosts,
  machine = hostname(),
  now,
}: SelfSignedOptions): ServerCertificate {
  const files = folder === undefined ? undefined : certificatePaths(folder);
  const wanted = certificateNames(hosts, machine);
  const warnings: string[] = [];
  const stored = files && readAuthority(files, folder!);
  const isValid = stored && daysLeft(stored.certificate, now) > 1;
  if (stored && !isValid) warnings.push(`The authority in ${folder} has expired: clients have to trust the new one.`);
  const authority = (isValid && stored) || createAuthority(wanted, machine, now, files);
  const names = wanted.filter((name) => permits(authority.certificate, name));
  for (const name of wanted.filter((each) => !names.includes(each))) {
    warnings.push(
      `The certificate does not name ${name}, which the authority in ${folder} may not vouch for: to have it in, remove that folder, start again, and trust the new one.`,
    );
  }
  const { certificate, key } =
    (files && readValidCertificate(files, authority, names, now)) ?? createCertificate(authority, names, now, files);
  const { root } = authority;
  return {
    tls: { cert: certificate + authority.certificate.toString(), key },
    warnings,
    authority: { certificate: root, file: files?.root },
  };
}

/** Commands by which clients trust the authority, one line each. */
export function trustInstructions(authority: Authority, origin: string): string {
  const file = authority.file ?? 'holdfast-ca.pem';
  const get = authority.file === undefined ? `\n  get it    curl -k -o ${file} ${origin}/_holdfast/certificate` : '';
  return `Clients have to trust its authority; these are the ways (more in docs/guide/https.md):${get}
  Node      NODE_EXTRA_CA_CERTS=${file}
  Python    REQUESTS_CA_BUNDLE=${file}
  Linux     sudo cp ${file} /usr/local/share/ca-certificates/holdfast.crt && sudo update-ca-certificates
  macOS     sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ${file}
  Windows   certutil -user -addstore Root ${file}`;
}

/** The first one is the certificate's subject. */
function certificateNames(hosts: readonly string[], machine: string): string[] {
  const services = serviceNames.map((service) => `*.${service}.localhost`);
  const names = ['localhost', '*.localhost', ...services, '127.0.0.1', '::1', machine, ...hosts].map((name) =>
    name.toLowerCase().replace(/%.*/, ''),
  );
  const everywhere = ['0.0.0.0', '::', ''];
  const isName = (name: string) => isIP(name) !== 0 || /^(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*$/.test(name);
  return [...new Set(names)].filter((name) => !everywhere.includes(name) && isName(name));
}

type CertificatePaths = ReturnType<typeof certificatePaths>;

function certificatePaths(folder: string) {
  const file = (name: string) => join(folder, name);
  return {
    root: file('ca.pem'),
    issuer: file('issuer.pem'),
    issuerKey: file('issuer-key.pem'),
    certificate: file('certificate.pem'),
    key: file('key.pem'),
  };
}

function createAuthority(
  names: readonly string[],
  machine: string,
  now: Date,
  files: CertificatePaths | undefined,
): LoadedAuthority {
  // A unique name: lists of trusted authorities then tell two of them apart.
  const commonName = `Holdfast on ${machine} ${randomBytes(4).toString('hex')}`;
  const made = makeAuthority(commonName, names, validityFrom(now, AUTHORITY_DAYS));
  if (files) {
    makeFolderDurably(dirname(files.root));
    // The root is written last: a root without its issuer is never found, even after a kill.
    rmSync(files.root, { force: true });
    writePair(files.issuerKey, files.issuer, made);
    writeFileDurably(files.root, made.root, { mode: 0o644 });
  }
  return { root: made.root, certificate: new X509Certificate(made.certificate), key: createPrivateKey(made.key) };
}

function createCertificate(
  authority: LoadedAuthority,
  names: readonly string[],
  now: Date,
  files: CertificatePaths | undefined,
): KeyedCertificate {
  const days = Math.min(CERTIFICATE_DAYS, daysLeft(authority.certificate, now));
  const made = makeCertificate(authority, names, validityFrom(now, days));
  if (files) writePair(files.key, files.certificate, made);
  return made;
}

function readAuthority(files: CertificatePaths, folder: string): LoadedAuthority | undefined {
  const root = readIfExists(files.root);
  if (root === undefined) return undefined;
  const damaged = `The authority of --https auto in ${folder} is damaged, or its key is missing: restore it, or remove that folder and let clients trust the new one.`;
  const issuer = parsePair(readIfExists(files.issuer), readIfExists(files.issuerKey));
  if (!issuer || !isIssuedBy(root, issuer.certificate)) throw new StartError(damaged);
  return { root, ...issuer };
}

/** Clients trust the authority, not the certificate: a certificate with any fault is replaced. */
function readValidCertificate(
  files: CertificatePaths,
  authority: LoadedAuthority,
  names: readonly string[],
  now: Date,
): KeyedCertificate | undefined {
  const [pem, key] = [readIfExists(files.certificate), readIfExists(files.key)];
  const certificate = parsePair(pem, key)?.certificate;
  const isUsable =
    certificate?.verify(authority.certificate.publicKey) &&
    hasExactNames(certificate, names) &&
    daysLeft(certificate, now) > Math.min(RENEW_DAYS, daysLeft(authority.certificate, now) - 1);
  return isUsable ? { certificate: pem!, key: key! } : undefined;
}

function isIssuedBy(root: string, certificate: X509Certificate): boolean {
  try {
    return certificate.verify(new X509Certificate(root).publicKey);
  } catch {
    return false;
  }
}

function parsePair(pem: string | undefined, keyPem: string | undefined): CertificateAndKey | undefined {
  if (pem === undefined || keyPem === undefined) return undefined;
  try {
    const [certificate, key] = [new X509Certificate(pem), createPrivateKey(keyPem)];
    return certificate.checkPrivateKey(key) ? { certificate, key } : undefined;
  } catch {
    return undefined;
  }
}

/** The key is written first: a certificate without its key is never found, even after a kill. */
function writePair(keyFile: string, certificateFile: string, { certificate, key }: KeyedCertificate): void {
  rmSync(certificateFile, { force: true });
  writeFileDurably(keyFile, key, { mode: 0o600 });
  writeFileDurably(certificateFile, certificate, { mode: 0o644 });
}

function readIfExists(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new StartError(`Cannot read ${file} (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** Valid from yesterday on: the clocks of clients may be slow. */
function validityFrom(now: Date, days: number) {
  const at = (day: number) => new Date(now.getTime() + day * DAY_MILLISECONDS);
  return { from: at(-1), until: at(days) };
}

function daysLeft({ validTo }: X509Certificate, now: Date): number {
  return (new Date(validTo).getTime() - now.getTime()) / DAY_MILLISECONDS;
}
