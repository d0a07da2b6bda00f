/** X.509 certificates: a CA with name constraints, and server certificates that it signs. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import {
  bitString,
  boolean,
  type Der,
  explicitTag,
  implicitTag,
  integer,
  objectId,
  octetString,
  sequence,
  set,
  time,
  utf8,
} from './der.ts';

export interface KeyedCertificate {
  /** Both in PEM. */
  readonly certificate: string;
  readonly key: string;
}

export interface Validity {
  readonly from: Date;
  readonly until: Date;
}

const ECDSA_WITH_SHA256 = sequence(objectId('1.2.840.10045.4.3.2'));
const SERVER_AUTH_USAGE = extension('2.5.29.37', false, sequence(objectId('1.3.6.1.5.5.7.3.1')));

export interface GeneratedAuthority extends KeyedCertificate {
  /** In PEM: the certificate that clients trust. Its key is discarded. */
  readonly root: string;
}

/**
 * A client that trusts the root trusts only servers with these names and subdomains of them. Some clients do not apply the
 * constraints of a root that they trust directly. So the root signs one issuer, which has the constraints too, and its key is discarded.
 */
export function makeAuthority(commonName: string, names: readonly string[], validity: Validity): GeneratedAuthority {
  const [rootKeys, keys] = [0, 1].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' })) as [Keys, Keys];
  const permitted = [...new Map(names.map(nameConstraint).map((der) => [der.toString('hex'), der])).values()];
  const extensions = (authoritiesBelow: number) => [
    extension('2.5.29.19', true, sequence(boolean(true), integer(authoritiesBelow))),
    extension('2.5.29.15', true, bitString(Buffer.from([0b0000_0110]), 1)), // keyCertSign, cRLSign
    extension('2.5.29.30', true, sequence(explicitTag(0, ...permitted))),
  ];
  const name = distinguishedName(commonName);
  const common = { issuer: name, signer: rootKeys, validity };
  const root = issue({ ...common, subject: name, ...rootKeys, extensions: extensions(1) });
  const subject = distinguishedName(`${commonName} issuer`);
  return { root: root.certificate, ...issue({ ...common, subject, ...keys, extensions: extensions(0) }) };
}

/** A server certificate. The names are host names, wildcards and addresses. */
export function makeCertificate(
  authority: { readonly certificate: X509Certificate; readonly key: KeyObject },
  names: readonly string[],
  validity: Validity,
): KeyedCertificate {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const extensions = [
    extension('2.5.29.19', true, sequence()), // no authority
    extension('2.5.29.15', true, bitString(Buffer.from([0b1000_0000]), 7)), // digitalSignature
    extension('2.5.29.17', false, sequence(...names.map(generalName))),
  ];
  const issuer = distinguishedName(/^CN=(.*)$/m.exec(authority.certificate.subject)?.[1] ?? '');
  const signer = { privateKey: authority.key, publicKey: authority.certificate.publicKey };
  return issue({ subject: distinguishedName(names[0]!), issuer, ...pair, signer, validity, extensions });
}

/** Whether the name constraints of an authority made here permit the name. */
export function permits(authority: X509Certificate, name: string): boolean {
  return authority.raw.includes(nameConstraint(name));
}

/** Whether a certificate of this module has these names, in this order, and no others. */
export function hasExactNames(certificate: X509Certificate, names: readonly string[]): boolean {
  return certificate.raw.includes(sequence(...names.map(generalName)));
}

interface Keys {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

interface CertificateFields extends Keys {
  readonly subject: Der;
  readonly issuer: Der;
  readonly signer: Keys;
  readonly validity: Validity;
  readonly extensions: readonly Der[];
}

function issue({
  subject,
  issuer,
  privateKey,
  publicKey,
  signer,
  validity,
  extensions,
}: CertificateFields): KeyedCertificate {
  const serial = randomBytes(16);
  serial[0]! &= 0x7f;
  const toSign = sequence(
    explicitTag(0, integer(2)), // version 3
    integer(serial),
    ECDSA_WITH_SHA256,
    issuer,
    sequence(time(validity.from), time(validity.until)),
    subject,
    encodeSpki(publicKey),
    explicitTag(
      3,
      sequence(
        ...extensions,
        SERVER_AUTH_USAGE,
        extension('2.5.29.14', false, octetString(keyIdentifier(publicKey))),
        extension('2.5.29.35', false, sequence(implicitTag(0, keyIdentifier(signer.publicKey)))),
      ),
    ),
  );
  const signature = sign('sha256', toSign, signer.privateKey);
  const certificate = new X509Certificate(sequence(toSign, ECDSA_WITH_SHA256, bitString(signature)));
  return { certificate: certificate.toString(), key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

function extension(id: string, critical: boolean, value: Der): Der {
  return sequence(objectId(id), ...(critical ? [boolean(true)] : []), octetString(value));
}

function distinguishedName(commonName: string): Der {
  const part = (id: string, text: string) => set(sequence(objectId(id), utf8(text)));
  return sequence(part('2.5.4.10', 'Holdfast'), part('2.5.4.3', commonName));
}

function generalName(name: string): Der {
  return isIP(name) ? implicitTag(7, addressBytes(name)) : implicitTag(2, Buffer.from(name));
}

/** The name constraint that covers a name. */
function nameConstraint(name: string): Der {
  if (isIP(name) === 0)
    return sequence(implicitTag(2, Buffer.from(/(?:^|\.)localhost$/.test(name) ? 'localhost' : name)));
  const loopback = isIP(name) === 4 && name.startsWith('127.');
  const address = addressBytes(loopback ? '127.0.0.0' : name);
  const mask = Buffer.alloc(address.length, 0xff);
  if (loopback) mask.fill(0, 1);
  return sequence(implicitTag(7, Buffer.concat([address, mask])));
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number));
  // URL normalizes an address to hexadecimal groups.
  const { hostname } = new URL(`http://[${address.replace(/%.*/, '')}]`);
  const [before, after] = hostname
    .slice(1, -1)
    .split('::')
    .map((half) => half.split(':').filter((group) => group !== ''));
  const gap = Array.from({ length: after ? 8 - before!.length - after.length : 0 }, () => '0');
  const groups = [...before!, ...gap, ...(after ?? [])];
  return Buffer.concat(groups.map((group) => Buffer.from(group.padStart(4, '0'), 'hex')));
}

function encodeSpki(key: KeyObject): Der {
  return key.export({ type: 'spki', format: 'der' });
}

function keyIdentifier(key: KeyObject): Buffer {
  return createHash('sha256').update(encodeSpki(key)).digest().subarray(0, 20);
}
