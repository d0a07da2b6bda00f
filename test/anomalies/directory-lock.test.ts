import { spawnSync } from 'node:child_process';
import { readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { newFolder, refusal, serve } from '../support/disposable-servers.ts';
import { checkFolder } from '../support/server-process.mjs';

const NEW_CONTAINER = ['unshare', '--pid', '--fork', '--mount-proc', '--uts', '--kill-child'];
/** A parent that never learns of its child's end. */
const NEVER_REAPING = ['sh', '-c', '"$@" & exec sleep 600', 'sh'];
const longAgo = new Date(Date.now() - 3_600_000);

const lockIn = (location: string): string => join(location, 'holdfast.lock');

function ownerOf(location: string): number {
  return Number(/^process (\d+) on /.exec(readFileSync(lockIn(location), 'utf8'))?.[1]);
}

describe('The lock of the data folder', () => {
  it('refuses a second server, with one line', async () => {
    const location = newFolder();
    const first = await serve(location);
    expect(await refusal(location)).toContain(`in use by another Holdfast (process ${first.pid} on ${hostname()})`);
    expect((await first.client.createContainer('one')).status).toBe(201);
  });

  it('is not taken from a server that is paused, however long', async () => {
    const location = newFolder();
    const first = await serve(location);
    await first.client.createContainer('one');
    first.signal('SIGSTOP');
    utimesSync(lockIn(location), longAgo, longAgo);
    expect(await refusal(location)).toContain('in use');
    first.signal('SIGCONT');
    expect((await first.client.putBlob('one/after', Buffer.from('after'))).status).toBe(201);
    expect(await first.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    const next = await serve(location);
    expect(await next.client.listBlobs('one')).toEqual(['after']);
  });

  it('is free at once when its owner was killed', async () => {
    const location = newFolder();
    for (let i = 0; i < 3; i++) {
      const server = await serve(location);
      expect((await server.client.createContainer(`container-${i}`)).status).toBe(201);
      await server.kill('SIGKILL');
    }
  });

  it('is free at once after its owner was killed, even before the parent has reaped it', async ({ skip }) => {
    skip(process.platform !== 'linux', 'a zombie is found by /proc');
    const location = newFolder();
    await serve(location, { before: NEVER_REAPING });
    const owner = ownerOf(location);
    process.kill(owner, 'SIGKILL');
    const stateOf = () => /^State:\s+(\w)/m.exec(readFileSync(`/proc/${owner}/status`, 'utf8'))?.[1];
    await expect.poll(stateOf, { timeout: 10_000 }).toBe('Z');
    await serve(location);
  });

  it('holds between containers that share a volume', async ({ skip }) => {
    const [command = '', ...words] = NEW_CONTAINER;
    skip(spawnSync(command, [...words, 'true']).status !== 0, 'namespaces need root on Linux');
    const location = newFolder();
    await serve(location, { before: NEW_CONTAINER });
    expect(ownerOf(location)).toBe(1);
    expect(await refusal(location, { before: NEW_CONTAINER })).toContain('in use');
    expect(await refusal(location)).toContain('in use');
  });

  it('does not keep a check out', async () => {
    const location = newFolder();
    await serve(location);
    expect(await checkFolder(location)).toMatchObject({ code: 0 });
  });

  it.each([
    ['removed', (file: string) => rmSync(file)],
    ['replaced', (file: string) => renameSync(copyOf(file), file)],
  ])('that was %s ends its server at once, which leaves everything to the next one', async (_, change) => {
    const location = newFolder();
    const server = await serve(location);
    await server.client.createContainer('one');
    change(lockIn(location));
    expect(await server.ended).toEqual({ code: null, signal: 'SIGKILL' });
    expect(server.stdout()).toContain('the lock of the data folder is gone');
    const next = await serve(location);
    expect((await next.client.putBlob('one/next', Buffer.from('next'))).status).toBe(201);
  });

  it('respects that of an older version, until it has long been silent', async () => {
    const location = newFolder();
    const file = join(location, 'in-use');
    writeFileSync(file, '{}');
    expect(await refusal(location)).toContain('An older Holdfast works on the folder');
    utimesSync(file, longAgo, longAgo);
    await serve(location);
  });
});

function copyOf(file: string): string {
  writeFileSync(`${file}.copy`, readFileSync(file));
  return `${file}.copy`;
}
