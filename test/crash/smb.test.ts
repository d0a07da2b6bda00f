/** `kill -9` while SMB and REST write files of one share: everything that was answered is there afterwards, and `check` finds nothing. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ShareClient } from '@azure/storage-file-share';
import { afterAll, expect, it } from 'vitest';
import { ACCESS, DISPOSITION, SHARE, SmbClient } from '../../examples/managing-concurrency/smb-client.ts';
import { randomOf } from '../support/random.mjs';
import { checkFolder } from '../support/server-process.mjs';
import { startHoldfastSmb } from '../support/smb-target.mjs';

const ROUNDS = 4;
const WRITERS = 4;
const ACCESS_ALL = ACCESS.read | ACCESS.write | ACCESS.delete;

const location = mkdtempSync(join(tmpdir(), 'holdfast-smb-crash-'));
afterAll(() => rmSync(location, { recursive: true, force: true }));

/** The answered content of each file. While a request is under way the file may have either of two. */
type Files = Map<string, { answered: string | undefined; begun?: string | undefined }>;

it('No answered write or deletion is lost', { timeout: 240_000 }, async () => {
  const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 31);
  console.log(`HOLDFAST_SEED=${seed}`);
  const random = randomOf(seed);
  const files: Files = new Map();
  let answered = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const server = await startHoldfastSmb({ location });
    const share = server.shares.getShareClient(server.share);
    await expectFiles(share, files);
    const address = { host: '127.0.0.1', ...server };
    const writers = Array.from({ length: WRITERS }, async (_, writer) => {
      const client = await SmbClient.connect(address);
      for (let number = 0; ; number++) {
        const name = `w${writer}-${number % 20}.txt`;
        const state = files.get(name) ?? { answered: undefined };
        files.set(name, state);
        const next = number % 7 === 6 ? undefined : `${round} ${number} ${'x'.repeat(random.below(3_000))}`;
        state.begun = next ?? 'deleted';
        if (next === undefined) await remove(client, share, name, number);
        else if (writer % 2 === 0) await writeOverSmb(client, name, next);
        else await writeOverRest(share, name, next);
        state.answered = next;
        delete state.begun;
        answered++;
      }
    });
    const ended = Promise.allSettled(writers);
    await sleep(500 + random.below(1_500));
    await server.kill('SIGKILL');
    await ended;
    expect(await checkFolder(location)).toMatchObject({ code: 0 });
  }
  expect(answered).toBeGreaterThan(50);
});

/** One message writes the whole content: a file that was killed within is the old one, empty, or the new one. */
async function writeOverSmb(client: SmbClient, name: string, text: string): Promise<void> {
  const file = await client.open(name, { access: ACCESS_ALL, share: SHARE.read, disposition: DISPOSITION.overwriteIf });
  await client.write(file, 0n, Buffer.from(text));
  await client.close(file);
}

async function writeOverRest(share: ShareClient, name: string, text: string): Promise<void> {
  const file = share.rootDirectoryClient.getFileClient(name);
  await file.create(text.length);
  await file.uploadRange(text, 0, text.length);
}

async function remove(client: SmbClient, share: ShareClient, name: string, number: number): Promise<void> {
  if (number % 2 === 0) await share.rootDirectoryClient.getFileClient(name).deleteIfExists();
  else {
    const options = { access: ACCESS_ALL, share: SHARE.none, deleteOnClose: true, disposition: DISPOSITION.openIf };
    await client.close(await client.open(name, options));
  }
}

async function expectFiles(share: ShareClient, files: Files): Promise<void> {
  for (const [name, state] of files) {
    const file = share.rootDirectoryClient.getFileClient(name);
    const found = (await file.exists()) ? (await file.downloadToBuffer()).toString() : undefined;
    if (!('begun' in state)) expect(found, name).toBe(state.answered);
    state.answered = found;
    delete state.begun;
  }
}
