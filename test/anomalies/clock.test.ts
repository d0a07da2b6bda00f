import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BlobSASPermissions, BlobServiceClient } from '@azure/storage-blob';
import { start } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { newFolder, type Server, serve } from '../support/disposable-servers.ts';
import { checkFolder, run } from '../support/server-process.mjs';

const cli = fileURLToPath(new URL('../../dist/bin/holdfast.js', import.meta.url));
const YEARS_SECONDS = 3_650.5 * 86_400;
const WARNING = 'days ahead of this machine';
const silent = { log: { level: 'silent' as const } };

async function clock(location: string, ...words: string[]) {
  const program = run([process.execPath, cli, 'clock', '--location', location, ...words]);
  const { code } = await program.ended;
  return { code, text: program.stdout() + program.stderr() };
}

/** As one wrong start leaves it: ten years ahead. The ETags that its blob had. */
async function folderOfTheFuture(location: string): Promise<string[]> {
  const ports = { blobPort: 0, queuePort: 0, tablePort: 0 };
  const server = await start({ location, testClock: true, ...ports, ...silent });
  const container = BlobServiceClient.fromConnectionString(server.connectionString).getContainerClient('one');
  await container.create();
  const blob = container.getBlockBlobClient('blob');
  const etags = [(await blob.upload('1', 1)).etag!];
  await server.clock.advance(YEARS_SECONDS);
  etags.push((await blob.upload('2', 1)).etag!);
  // A name without a row has nothing that its next version could be compared with.
  await blob.delete();
  await server.stop();
  return etags;
}

function blobOf(server: Server) {
  const [, connection = ''] = /connection string {2}(\S+)/.exec(server.stdout()) ?? [];
  return BlobServiceClient.fromConnectionString(connection).getContainerClient('one').getBlockBlobClient('blob');
}

async function statusOfSigned(server: Server): Promise<number> {
  const expiresOn = new Date(Date.now() + 3_600_000);
  const url = await blobOf(server).generateSasUrl({ permissions: BlobSASPermissions.parse('r'), expiresOn });
  return (await fetch(url)).status;
}

describe('Data whose time is ahead', () => {
  it('is reported at the start, and by holdfast clock, even beside a running server', async () => {
    const location = newFolder();
    await folderOfTheFuture(location);
    const server = await serve(location);
    expect(server.stdout()).toContain(`3650 ${WARNING}`);
    await blobOf(server).upload('x', 1);
    expect(await statusOfSigned(server)).toBe(403);
    expect(await clock(location)).toEqual({ code: 0, text: expect.stringContaining(', 3650 days ahead\n') });
    const json = JSON.parse((await clock(location, '--json')).text);
    expect(Math.floor(json.aheadSeconds / 86_400)).toBe(3650);
    expect(await clock(location, '--set-back')).toEqual({ code: 1, text: expect.stringContaining('in use') });
  });

  it('is set back by holdfast clock: signatures count, and no ETag comes twice', async () => {
    const location = newFolder();
    const etags = await folderOfTheFuture(location);
    expect((await clock(location, '--set-back')).text).toContain('3650 days ahead: it is set back by that');
    for (let i = 0; i < 3; i++) {
      const server = await serve(location);
      expect(server.stdout()).not.toContain(WARNING);
      const { etag, date } = await blobOf(server).upload('x', 1);
      expect(Math.abs(date!.getTime() - Date.now())).toBeLessThan(3_600_000);
      etags.push(etag!);
      expect(await statusOfSigned(server)).toBe(200);
      if (i < 2) await blobOf(server).delete();
      await server.kill(i === 0 ? 'SIGKILL' : 'SIGTERM');
      expect((await checkFolder(location)).text).not.toContain('ahead of');
      // What is left after a kill is less than two seconds, of which it need not know.
      expect((await clock(location, '--set-back')).code).toBe(0);
    }
    const numbers = etags.map((etag) => BigInt(etag.replaceAll('"', '')));
    for (const [i, number] of numbers.entries()) if (i > 0) expect(number).toBeGreaterThan(numbers[i - 1]!);
  });

  it('counts the time for which it was stopped afterwards', async () => {
    const location = newFolder();
    await folderOfTheFuture(location);
    await clock(location, '--set-back');
    // A higher lead makes the stored time one that ended so much earlier.
    const file = join(location, 'holdfast.json');
    const { lead, ...others } = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify({ ...others, lead: String(BigInt(lead) + 36_000_000_000n) }));
    const { date } = await blobOf(await serve(location)).upload('x', 1);
    expect(Math.abs(date!.getTime() - Date.now())).toBeLessThan(1_800_000);
  });

  it('lets leases of that time end when they would have', async () => {
    const location = newFolder();
    await folderOfTheFuture(location);
    const before = await serve(location);
    await blobOf(before).upload('x', 1);
    const lease = blobOf(before).getBlobLeaseClient();
    await lease.acquireLease(15);
    await before.kill('SIGTERM');
    await clock(location, '--set-back');
    const server = await serve(location, { flags: ['--test-clock'] });
    await expect(blobOf(server).upload('y', 1)).rejects.toMatchObject({ code: 'LeaseIdMissing' });
    await fetch(new URL('/_holdfast/clock/advance?seconds=20', server.origin), { method: 'POST' });
    await blobOf(server).upload('y', 1);
  });
});
