import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { BlobSASPermissions } from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { onLmdb } from '../support/test-server.ts';

const PROCESSES = 16;
const LINES = 20;
const program = fileURLToPath(new URL('log-writer.mjs', import.meta.url));
const run = promisify(execFile);

describe('One log of sixteen processes', { timeout: 120_000 }, () => {
  onLmdb((running) => {
    it('has every line once, at the offset that its writer was told', async () => {
      const log = (await running.newContainer()).getAppendBlobClient('app.log');
      const permissions = BlobSASPermissions.parse('racw');
      const url = await log.generateSasUrl({ permissions, expiresOn: new Date(Date.now() + 3_600_000) });
      const printed = await Promise.all(
        Array.from({ length: PROCESSES }, (_, at) =>
          run(process.execPath, [program, url, `writer-${at}`, String(LINES)]),
        ),
      );
      const lines = printed.flatMap(({ stdout }) => {
        const own = stdout
          .trim()
          .split('\n')
          .map((text) => JSON.parse(text) as { offset: number; line: string });
        const offsets = own.map(({ offset }) => offset);
        expect(offsets).toEqual(offsets.toSorted((one, other) => one - other));
        return own;
      });
      expect(lines).toHaveLength(PROCESSES * LINES);
      const text = lines.toSorted((one, other) => one.offset - other.offset).map(({ line }) => line);
      expect((await log.downloadToBuffer()).toString()).toBe(text.join(''));
      expect((await log.getProperties()).blobCommittedBlockCount).toBe(PROCESSES * LINES);
    });
  });
});
