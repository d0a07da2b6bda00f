import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { pfx } from '../../../test/support/pfx.ts';
import { type CertificateFiles, StartError } from '../config.ts';
import { readCertificate } from './certificate.ts';
import { makeAuthority, makeCertificate } from './x509.ts';

const now = new Date('2027-05-01T12:00:00Z');
const validity = { from: new Date('2027-01-01T00:00:00Z'), until: new Date('2028-01-01T00:00:00Z') };
const authority = makeAuthority('An authority', ['localhost'], validity);
const opened = { certificate: new X509Certificate(authority.certificate), key: createPrivateKey(authority.key) };
const leaf = makeCertificate(opened, ['localhost'], validity);
const encrypted = createPrivateKey(leaf.key)
  .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'open-sesame' })
  .toString();

/** The one of test/support as it was made before OpenSSL 3, by -legacy. */
const oldPfx = `
MIIDogIBAzCCA2gGCSqGSIb3DQEHAaCCA1kEggNVMIIDUTCCAkcGCSqGSIb3DQEHBqCCAjgwggI0AgEAMIICLQYJKoZIhvcNAQcBMBwGCiqGSI
b3DQEMAQYwDgQIKvnBcXXdVNUCAggAgIICAObiCYRUvhaZQC/1h1qwQfcilo89vq33nz6mijHbvL4PebFo2Q9O2vG0VAwU8QAHuOgoJn8g8KPn
GXNadR2Y1oIx1DWGknL16aTpQ9nK9unMdhYqYpDBl469HJqXY2cllCukhFxiwKYaNn7jIw7Ckq1SpIFSo/iC4eyqWnI688FE5Hpv+1ti0I5CG+
fWJUVgIMt4Ml0QTKIb7LVmpRrPQLDekenvFtWxv3pZ3Dv20qBzdTm2kCGkmP50PoVD+JSnplVRb9w9nf87HkwxjTjrWXGbYvS2/s4DOPQoqV2v
KbciEEUboYWb0kvl5RMZK5QbIbkgwoJSGndPBSf9wdZ5g3RjFCmQBJizGJ4IfN6YlA8+Gf8PKe3kUIHgVvZysTzQD2VH1kfFaa3foGXB8pjk+t
b6hFV1sBxJfEtByMGwMivDIdJwdj2Unnfbg5/fleShsctiE6T8dBQondbCPuyFRNge80gz/hwcaGN8T2BLqLWw4rSX2UPpCddP/iwTy/conV9X
mv0fTZYLT3o3zX7QkfPE8aULx9IchDeLCx7O+jKLi0TEGCgsH/pSXgSkMIRs/LbrVXAaZrRLHBCeq4FME1gvmkzmM+Gdx02f3uD6qx9rsp+3Jn
hJC/Po4nAVf0LYsvHRudttOG7FBXa4fBvGibpHYgCvlFCa4Ku6+0olLecLMIIBAgYJKoZIhvcNAQcBoIH0BIHxMIHuMIHrBgsqhkiG9w0BDAoB
AqCBtDCBsTAcBgoqhkiG9w0BDAEDMA4ECIyUIQr9GxoTAgIIAASBkGNXsvUV9/2WqRfmaTaYi/GkB/lRbv3v06D848TcccJEranCqQWCwkQQrj
LZJDCPG9HIvhqPTqKE4l8YjIDT/Ho2Apfc9tZZ0Gm9oEL4R1Xo8PsFSoahKuFwOOmoMlQmrnhn69FIa9VDeXnMQgxZTFR7JrzjuTz+x72pe4Rv
Ih1Eunanx6PGsA5FUJlBYsO8oDElMCMGCSqGSIb3DQEJFTEWBBTd4JkTe9vzG2QlqiaC5Ss/LpsBtjAxMCEwCQYFKw4DAhoFAAQURkJcm0k3WX
pmxpHlZelDz+Y+DfEECIlK5rxPMUwYAgIIAA==`;
/** The same without the key, by -nokeys. */
const keylessPfx = `
MIICxwIBAzCCAn0GCSqGSIb3DQEHAaCCAm4EggJqMIICZjCCAmIGCSqGSIb3DQEHBqCCAlMwggJPAgEAMIICSAYJKoZIhvcNAQcBMFcGCSqGSI
b3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhHZC+WWCLKDgICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEJeNL6HdVEo/bNUJv9SnFQ6A
ggHgclIsrFTXdM+9Ruq93HSTz+dzv64fcGP+vfXnfmz3qPCUCoF8srW/bax+FhsBeBxuv/UwosDhx34Rr0Iehd43tf5uNXYv5hMj/PjDbi8c8E
cABvmP5J2o2kim8Vf5Sz7WuCtA43vG+UAbnKR3h/cWmwlfw2av6MSlGBc9Xnxrj/LrbMd22iuJN1WKVSSw8bOIGuIQ+O1BZKHk5h9gsNEDjyi6
w3h4nsjf0tYXBlUHDeoibr/jwWJAR9d5U8xAA80Og7fHvtHjr79blc1yps82KYP9VkSFS5/LIMjqRvMfXWmfKdi1h7FyQXbAzW8qR9ZHCdntPD
jHta9ViolbjmoNeCouIPbvmwmfxp+ug+xo6cxsnExfokLOmNzSC907TohMRRehRnVX8Z+XN8h0OjcQ8GZ7QnTGCHIdGGtBBSqYzrh+/m7VDCwU
C2GmAkG2JFggBl0ZJE64L6Jcmy+1HHyqaccAELz2ctfkoXg4zUVVJqmXO2l7us1uJ/DGr8+ADVVUslRW7XNbeDkyprFDl4UoMOiOC5UGxi8ikv
BLBfg0s4lkWf3mlM0tfcfRMTUQS4jpbAMznkVUIGEI6Fo37B+4gYi63UKiqeAOB9Gcyz9vngRVQcL6FB0Ga5PDHuPmOTIsMEEwMTANBglghkgB
ZQMEAgEFAAQghrz6LgYXF2gmzNd5+r/w90huE2j5Bgy8vJt22PHpSJcECAYeE63S16ZpAgIIAA==`;

const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const contents: Record<string, string | Buffer> = {
  'cert.pem': leaf.certificate,
  'chain.pem': leaf.certificate + authority.certificate,
  'wrong-order.pem': authority.certificate + leaf.certificate,
  'both.pem': leaf.key + leaf.certificate,
  'key.pem': leaf.key,
  'encrypted.pem': encrypted,
  'other-key.pem': authority.key,
  'damaged-cert.pem': leaf.certificate.replaceAll(/[a-z]/g, 'a'),
  'damaged-key.pem': leaf.key.replace(/[a-z]{3}/, '!!!'),
  'site.pfx': pfx,
  'old.pfx': Buffer.from(oldPfx, 'base64'),
  'keyless.pfx': Buffer.from(keylessPfx, 'base64'),
  'damaged.pfx': pfx.subarray(0, 500),
  empty: '',
};
for (const [name, content] of Object.entries(contents)) writeFileSync(join(folder, name), content);

/** As on the command line: the certificate, the key or -, the password or -. */
function files(line: string): CertificateFiles {
  const [cert = '', key = '-', password = '-'] = line.split(' ');
  return {
    cert: join(folder, cert),
    ...(key !== '-' && { key: join(folder, key) }),
    ...(password !== '-' && { password }),
  };
}

describe('The certificate of --cert', () => {
  it.each([
    'cert.pem key.pem',
    'chain.pem key.pem',
    'both.pem',
    'cert.pem encrypted.pem open-sesame',
    'cert.pem key.pem not-needed',
    'site.pfx - open-sesame',
  ])('is loaded from %s', (line) => {
    const { warnings, authority: own } = readCertificate(files(line), now);
    expect([warnings, own]).toEqual([[], undefined]);
  });

  const refused: [line: string, fault: string][] = [
    ['missing.pem key.pem', 'Cannot read the file of --cert'],
    ['cert.pem missing.pem', 'Cannot read the file of --key'],
    ['. key.pem', 'EISDIR'],
    ['cert.pem', 'name its file by --key'],
    ['cert.pem other-key.pem', 'is not that of the certificate'],
    ['wrong-order.pem key.pem', "the server's own certificate comes first"],
    ['cert.pem encrypted.pem', 'is encrypted: give its password by --pwd'],
    ['cert.pem encrypted.pem wrong', 'is --pwd its password?'],
    ['cert.pem cert.pem', 'There is no private key in PEM in'],
    ['key.pem key.pem', 'There is no certificate in'],
    ['damaged-cert.pem key.pem', 'There is no certificate in'],
    ['cert.pem damaged-key.pem', 'cannot be read'],
    ['site.pfx', 'has a password: give it by --pwd'],
    ['site.pfx - wrong', 'is --pwd its password?'],
    ['site.pfx key.pem open-sesame', 'leave --key out'],
    ['old.pfx - open-sesame', 'export it again'],
    ['keyless.pfx - open-sesame', 'lacks the certificate or its private key'],
    ['damaged.pfx - open-sesame', 'There is no certificate in'],
    ['empty - x', 'There is no certificate in'],
  ];
  it.each(refused)('is refused in one line: %s', (line, fault) => {
    let refusal: unknown;
    try {
      readCertificate(files(line), now);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(StartError);
    expect((refusal as StartError).message).toContain(fault);
    expect((refusal as StartError).message).not.toMatch(/\n|open-sesame|PRIVATE KEY.*\S{40}/);
  });

  it.each(['cert.pem key.pem', 'site.pfx - open-sesame'])(
    'is loaded from %s outside of its validity, with a warning',
    (line) => {
      const after = readCertificate(files(line), new Date('2200-01-01T00:00:00Z'));
      expect(after.warnings[0]).toMatch(/expired on .* GMT/);
      const before = readCertificate(files(line), new Date('2025-01-01T00:00:00Z'));
      expect(before.warnings[0]).toContain('is valid from');
    },
  );
});
