/** The flags of HTTPS, as they are used. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Program, runProgram } from '../support/child-program.ts';
import { newFolder, root } from '../support/repository-copy.ts';

const READY = 'Azurite Blob service is successfully listening at https://';

function holdfast(cwd: string, ...words: readonly string[]): Program {
  return runProgram(process.execPath, [join(root, 'dist/bin/holdfast.js'), '--blobPort', '0', ...words], { cwd });
}

function originOf(program: Program): string {
  return /listening at (https:\S+)/.exec(program.stdout())![1]!;
}

/** The status of a request by a client that trusts this authority only. */
function ask(url: string, ca: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { ca, agent: false });
    outgoing.on('error', reject);
    outgoing.on('response', async (incoming) =>
      resolve({ status: incoming.statusCode!, text: String(Buffer.concat(await incoming.toArray())) }),
    );
    outgoing.end();
  });
}

describe('holdfast --https auto', () => {
  it('makes a certificate, prints how to trust it, and keeps it over a restart', async () => {
    const folder = newFolder();
    const file = join(folder, 'data', 'tls', 'ca.pem');
    let trusted: string | undefined;
    for (const _ of [1, 2]) {
      const program = holdfast(folder, '--https', 'auto', '--location', 'data');
      await program.printed(READY);
      trusted ??= readFileSync(file, 'utf8');
      expect((await ask(`${originOf(program)}/health/live`, trusted)).status).toBe(200);
      expect(program.stdout()).toContain('DefaultEndpointsProtocol=https;');
      expect(program.stdout()).toContain(`NODE_EXTRA_CA_CERTS=${file}\n`);
      for (const way of ['REQUESTS_CA_BUNDLE=', 'update-ca-certificates', 'security add-trusted-cert', 'certutil']) {
        expect(program.stdout()).toContain(way);
      }
      program.kill('SIGTERM');
      expect((await program.ended).code).toBe(0);
    }
    if (process.platform === 'win32') return;
    expect(statSync(join(folder, 'data', 'tls', 'issuer-key.pem')).mode & 0o777).toBe(0o600);
  });

  it('in memory gives out its authority, and writes nothing', async () => {
    const folder = newFolder();
    const program = holdfast(folder, '--https', 'auto', '--inMemoryPersistence');
    await program.printed(READY);
    const fetched = /curl -k -o holdfast-ca\.pem (\S+)/.exec(program.stdout())![1]!;
    const insecure = await new Promise<string>((resolve, reject) => {
      const outgoing = request(fetched, { rejectUnauthorized: false, agent: false });
      outgoing.on('error', reject);
      outgoing.on('response', async (incoming) => resolve(String(Buffer.concat(await incoming.toArray()))));
      outgoing.end();
    });
    expect((await ask(fetched, insecure)).text).toBe(insecure);
    expect(existsSync(join(folder, 'holdfast-data'))).toBe(false);
  });
});

describe('holdfast --cert', () => {
  it('serves with the certificate and the key that are named', async () => {
    const folder = newFolder();
    const maker = holdfast(folder, '--https', 'auto', '--location', 'data');
    await maker.printed(READY);
    maker.kill('SIGTERM');
    await maker.ended;
    const inFolder = (name: string) => join(folder, 'data', 'tls', name);
    const [cert, key, ca] = [join(folder, 'chain.pem'), inFolder('key.pem'), inFolder('ca.pem')];
    const chain = ['certificate.pem', 'issuer.pem'].map((name) => readFileSync(inFolder(name), 'utf8'));
    writeFileSync(cert, chain.join(''));
    const program = holdfast(folder, '--cert', cert, '--key', key, '--inMemoryPersistence');
    await program.printed(READY);
    expect((await ask(`${originOf(program)}/health/live`, readFileSync(ca, 'utf8'))).status).toBe(200);
    expect((await ask(`${originOf(program)}/_holdfast/certificate`, readFileSync(ca, 'utf8'))).status).toBe(400);
    expect(program.stdout()).not.toContain('NODE_EXTRA_CA_CERTS');
  });

  it('ends with 1 and one line, and makes no folder, when the certificate cannot be used', async () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'cert.pem'), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
    writeFileSync(join(folder, 'key.pem'), '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n');
    for (const words of [
      ['--cert', 'missing.pem', '--key', 'key.pem'],
      ['--cert', 'cert.pem', '--key', 'key.pem'],
    ]) {
      const program = holdfast(folder, ...words);
      expect((await program.ended).code).toBe(1);
      expect(program.stderr()).toMatch(/^holdfast: .*(missing|cert)\.pem.*\n$/);
      expect(existsSync(join(folder, 'holdfast-data'))).toBe(false);
    }
  });
});
