/** Snapshots of a share against writers, and against their own deletion. */
import type { ShareFileClient } from '@azure/storage-file-share';
import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { onEveryEngine } from '../support/test-server.ts';

const WRITERS = 16;
const SNAPSHOTS = 12;
const NUMBER_BYTES = 8;

const written = (n: number) => Buffer.from(String(n).padStart(NUMBER_BYTES, '0'));
const numberIn = async (file: ShareFileClient) => Number((await file.downloadToBuffer()).toString());

describe('Snapshot Share and writes', () => {
  onEveryEngine((running) => {
    it('have one order: a snapshot never has a write without those that were answered before it began', async () => {
      const share = await running.newShare();
      const root = share.rootDirectoryClient;
      const pairs = Array.from({ length: WRITERS }, (_, i) => [`first${i}`, `second${i}`] as const);
      for (const name of pairs.flat()) {
        await root.getFileClient(name).create(NUMBER_BYTES);
        await root.getFileClient(name).uploadRange(written(0), 0, NUMBER_BYTES);
      }
      let isDone = false;
      const writers = pairs.map(async ([first, second], i) => {
        for (let n = 1; !isDone; n++) {
          await root.getFileClient(first).uploadRange(written(n), 0, NUMBER_BYTES);
          await root.getFileClient(second).uploadRange(written(n), 0, NUMBER_BYTES);
          // A directory for every number: one is made before the one with the number before it goes.
          await share.getDirectoryClient(`at${i}-${n}`).create();
          if (n > 1) await share.getDirectoryClient(`at${i}-${n - 1}`).delete();
        }
      });
      const seconds: string[] = [];
      for (let i = 0; i < SNAPSHOTS; i++) seconds.push((await share.createSnapshot()).snapshot!);
      isDone = true;
      await Promise.all(writers);
      let before = pairs.map(() => 0);
      for (const second of seconds) {
        const shown = share.withSnapshot(second);
        const numbers = await Promise.all(
          pairs.map(([first, later]) =>
            Promise.all([first, later].map((name) => numberIn(shown.rootDirectoryClient.getFileClient(name)))),
          ),
        );
        const directories = new Map<number, number[]>();
        for await (const { name } of shown.rootDirectoryClient.listFilesAndDirectories({ prefix: 'at' })) {
          const [i, n] = name.slice(2).split('-').map(Number) as [number, number];
          directories.set(i, [...(directories.get(i) ?? []), n]);
        }
        for (const [i, [first = 0, later = 0]] of numbers.entries()) {
          expect([later, later + 1], `pair ${i}`).toContain(first);
          expect(later).toBeGreaterThanOrEqual(before[i]!);
          const made = directories.get(i)?.sort((one, other) => one - other) ?? [];
          expect(made.length).toBeLessThanOrEqual(2);
          if (made.length === 2) expect(made[1]).toBe(made[0]! + 1);
          // The directory of a number is made after both files have it.
          if (made.length > 0) expect(made.at(-1)).toBeLessThanOrEqual(later);
          else expect(later).toBeLessThanOrEqual(1);
        }
        before = numbers.map(([, later = 0]) => later);
      }
      if (running.where) expect((await check(running.where)).findings).toEqual([]);
    }, 120_000);

    it('leave a read of a snapshot complete while the snapshot is deleted and the file overwritten', async () => {
      const share = await running.newShare();
      const file = share.rootDirectoryClient.getFileClient('file');
      const bytes = 24 << 20;
      await file.create(bytes);
      for (let at = 0; at < bytes; at += 4 << 20) await file.uploadRange(Buffer.alloc(4 << 20, 1), at, 4 << 20);
      const { snapshot } = await share.createSnapshot();
      const shown = share.withSnapshot(snapshot!);
      const { readableStreamBody } = await shown.rootDirectoryClient.getFileClient('file').download();
      for (let at = 0; at < bytes; at += 4 << 20) await file.uploadRange(Buffer.alloc(4 << 20, 2), at, 4 << 20);
      await shown.delete();
      await file.delete();
      let read = 0;
      for await (const part of readableStreamBody as AsyncIterable<Buffer>) {
        expect(part.every((byte) => byte === 1)).toBe(true);
        read += part.length;
      }
      expect(read).toBe(bytes);
      if (running.where) expect((await check(running.where)).findings).toEqual([]);
    }, 120_000);
  });
});
