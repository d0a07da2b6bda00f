/** Power cuts of a real file system: the disk is a file, and its copy is what a cut at that moment leaves. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkFolder } from '../crash/server.mjs';
import { newFolder, serve } from './server.ts';

const DISK_BYTES = 512 << 20;
const LARGE = Buffer.alloc(1 << 20, 'large');

describe('A power cut', () => {
  it('just after the first acknowledged write leaves a folder that starts, and has it', async ({ skip }) => {
    const folder = newFolder();
    const image = newImage(folder);
    const disk = image && mounted(image, folder, 'before');
    skip(disk === undefined, 'an image of ext4 can be made and mounted only by root on Linux');
    const server = await serve(join(disk!, 'data'));
    expect((await server.client.createContainer('one')).status).toBe(201);
    expect((await server.client.putBlob('one/small', Buffer.from('small'))).status).toBe(201);
    expect((await server.client.putBlob('one/large', LARGE)).status).toBe(201);
    copyFileSync(image!, `${image}.cut`);

    const location = join(mounted(`${image}.cut`, folder, 'after')!, 'data');
    const next = await serve(location);
    expect((await next.client.getBlob('one/small')).body.toString()).toBe('small');
    expect((await next.client.getBlob('one/large')).body.equals(LARGE)).toBe(true);
    expect(await checkFolder(location)).toMatchObject({ code: 0 });
  });
});

/** Undefined where there is no mkfs.ext4. */
function newImage(folder: string): string | undefined {
  const image = join(folder, 'disk');
  writeFileSync(image, '');
  truncateSync(image, DISK_BYTES);
  return spawnSync('mkfs.ext4', ['-q', '-F', image]).status === 0 ? image : undefined;
}

function mounted(image: string, folder: string, name: string): string | undefined {
  const at = join(folder, name);
  mkdirSync(at);
  if (spawnSync('mount', ['-o', 'loop', image, at]).status !== 0) return undefined;
  // After the servers are killed: what was asked for last is done first.
  onTestFinished(() => void spawnSync('umount', ['--lazy', at]));
  return at;
}
