/** The commands that the README and the guide show: every one is understood, and those for shared access signatures give access. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { BlobServiceClient } from '@azure/storage-blob';
import { type HoldfastServer, start } from 'holdfast';
import { describe, expect, it, onTestFinished } from 'vitest';
import { azurite, azuriteFor, holdfast } from '../../src/cli/azurite-compat.ts';
import { parseCommand } from '../../src/cli/start-flags.ts';
import { newFolder, root } from '../support/repository-copy.ts';
import { installedIn, javascript, programsOf, runGuideProgram } from './guide-programs.ts';

const flavours = {
  ...{ holdfast, azurite },
  'azurite-blob': azuriteFor('blob'),
  'azurite-queue': azuriteFor('queue'),
  'azurite-table': azuriteFor('table'),
};
/** What may stand before a command, and the command up to its comment or redirection. */
const COMMAND =
  /^\s*(?:npx |command: |ExecStart=\/usr\/bin\/env |docker (?:run|exec) .*(?:holdfast|<container>) )?(holdfast|azurite(?:-blob|-queue|-table)?) (.*?)(?: +[#>&|].*)?$/;

interface ShownCommand {
  readonly page: string;
  readonly program: keyof typeof flavours;
  readonly words: readonly string[];
  readonly text: string;
}

const pages = ['README.md', ...readdirSync(join(root, 'docs', 'guide')).map((name) => join('docs', 'guide', name))];
const commands = pages.flatMap(commandsOf);

/** Lines of blocks, and text between backticks, that have a flag. */
function commandsOf(page: string): readonly ShownCommand[] {
  const markdown = readFileSync(join(root, page), 'utf8').replaceAll('\r\n', '\n');
  const blocks = [...markdown.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].flatMap(([, text = '']) => text.split('\n'));
  const inline = [...markdown.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/`([^`\n]+)`/g)].map(([, text = '']) => text);
  return [...blocks, ...inline].flatMap((line) => {
    const [, program, rest = ''] = COMMAND.exec(line) ?? [];
    if (!program || !/(?:^|\s)--?[a-z]/.test(rest)) return [];
    const words = rest.replace('<days>', '7').replace('<id>', '7').trim().split(/\s+/);
    return [{ page, program: program as keyof typeof flavours, words, text: `${program} ${rest.trim()}` }];
  });
}

describe('A command of the guide', () => {
  it.each(commands)('is understood: $text', ({ program, words }) => {
    const { words: own } = flavours[program].filterArguments(words);
    expect(() => parseCommand(own)).not.toThrow();
  });

  it('is found on many pages', () => {
    expect(new Set(commands.map(({ page }) => page)).size).toBeGreaterThanOrEqual(8);
  });
});

describe('The signatures of the page about accounts', () => {
  const shown = commands.filter(({ page, words }) => page.endsWith('accounts.md') && words[0] === 'sas');

  it('are of every kind', () => {
    expect(shown.length).toBeGreaterThanOrEqual(8);
  });

  it('are printed, and give access', async () => {
    const folder = newFolder();
    const server = await start({ blobPort: 0, location: join(folder, 'holdfast-data'), seed: SEED });
    onTestFinished(() => server.stop());
    const photos = BlobServiceClient.fromConnectionString(server.connectionString).getContainerClient('photos');
    const expiresOn = new Date(Date.now() + 3_600_000);
    const accessPolicy = { startsOn: new Date('2024-01-01'), expiresOn, permissions: 'rl' };
    await photos.setAccessPolicy(undefined, [{ id: 'readers', accessPolicy }]);
    for (const { words, text } of shown) {
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [join(root, 'dist', 'bin', 'holdfast.js'), ...words],
        { cwd: folder },
      );
      const urls = stdout.match(/https?:\/\/\S+/g) ?? [];
      expect(urls, text).not.toEqual([]);
      for (const url of urls) expect((await readBy(url, server)).status, `${text}: ${url}`).toBe(200);
    }
  });
});

const SEED = {
  containers: { photos: { blobs: { '2024/cat.jpg': 'a cat' } } },
  queues: { orders: { messages: ['two pizzas'] } },
  tables: { People: { entities: [{ PartitionKey: 'B', RowKey: '1' }] } },
  shares: { docs: { files: { 'notes/today.txt': 'Tea.' } } },
};

/** By the kind of resource that is signed. */
const LISTS: Record<string, string> = {
  c: '&restype=container&comp=list',
  s: '&restype=directory&comp=list',
};

/** A request that the signature allows: a list, or the bytes, or, of a queue, taking a message. */
function readBy(url: string, { queueUrl, tableUrl }: HoldfastServer): Promise<Response> {
  const target = new URL(url);
  const isOf = (service: string) => target.origin === new URL(service).origin;
  const isAccount = target.searchParams.has('srt');
  const path = isAccount && isOf(tableUrl) ? 'Tables' : !isAccount && isOf(queueUrl) ? '/messages' : '';
  target.pathname += path;
  const query = isAccount && !isOf(tableUrl) ? '&comp=list' : '';
  const listing = LISTS[target.searchParams.get('sr') ?? ''] ?? '';
  return fetch(`${target}${query}${listing}`, {
    headers: { 'x-ms-version': '2024-11-04', accept: 'application/json' },
  });
}

describe('The program of the page about running', () => {
  it('rehydrates a blob of an archive by the clock', async () => {
    const [program, ...more] = programsOf('running.md', javascript);
    expect(more).toEqual([]);
    const folder = newFolder();
    installedIn(folder, '@azure', 'holdfast');
    const before = `
      import { BlobServiceClient } from '@azure/storage-blob';
      import { start } from 'holdfast';
      const server = await start({ inMemory: true, blobPort: 0 });
      const container = BlobServiceClient.fromConnectionString(server.connectionString).getContainerClient('box');
      await container.create();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('Hello', 5);
    `;
    const whole = { ...program!, text: `${before}\n${program!.text}\nawait server.stop();` };
    expect(await runGuideProgram(javascript, whole, { folder, connectionString: '' })).toBe('Hot\n');
  });
});
