import { spawnSync } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { StartError } from './config.ts';
import { chooseLock, DirectoryInUse, lockByFlockCommand, lockDirectory, type TryLock } from './directory-lock.ts';

const noFlock = spawnSync('flock', ['--version']).status !== 0;
const ways: [string, TryLock, boolean][] = [
  ['by the native package', chooseLock(), false],
  ['by the program flock', lockByFlockCommand, noFlock],
];

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-lock-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

describe('The lock of the data directory', () => {
  for (const [way, tryLock, isMissing] of ways) {
    it(`excludes a second holder in the same process, too, until it is released: ${way}`, ({ skip }) => {
      skip(isMissing, 'the program flock is not installed');
      const folder = newFolder();
      const lock = lockDirectory(folder, () => {}, tryLock);
      expect(() => lockDirectory(folder, () => {}, tryLock)).toThrow(DirectoryInUse);
      lock.release();
      lockDirectory(folder, () => {}, tryLock).release();
    });
  }

  it('is on the file that is in the folder, even if that was replaced during the locking', () => {
    const folder = newFolder();
    let tries = 0;
    const lock = lockDirectory(
      folder,
      () => {},
      (descriptor) => {
        if (tries++ === 0) rmSync(join(folder, 'holdfast.lock'));
        return chooseLock()(descriptor);
      },
    );
    expect(tries).toBe(2);
    expect(() => lockDirectory(folder, () => {})).toThrow(DirectoryInUse);
    lock.release();
  });

  it.each<[string, (file: string) => void]>([
    ['was removed', (file) => rmSync(file)],
    ['has another in its place', (file) => renameSync(`${file}.other`, file)],
  ])('is reported lost before the next write when its file %s', (_, change) => {
    const folder = newFolder();
    const file = join(folder, 'holdfast.lock');
    let lost = 0;
    const lock = lockDirectory(folder, () => lost++);
    onTestFinished(lock.release);
    lock.check();
    expect(lost).toBe(0);
    writeFileSync(`${file}.other`, '');
    change(file);
    lock.check();
    expect(lost).toBe(1);
  });

  it('is refused where the file system has no locks', () => {
    const noLocks: TryLock = () => {
      throw new StartError('no locks');
    };
    expect(() => lockDirectory(newFolder(), () => {}, noLocks)).toThrow('no locks');
  });
});
