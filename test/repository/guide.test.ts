/** The programs in docs/guide do what the pages say. */
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { BlobServiceClient, type StorageSharedKeyCredential } from '@azure/storage-blob';
import { start } from 'holdfast';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { helpText } from '../../src/flags.ts';
import { noPythonSdk } from '../clients/installed.ts';
import { javascript, type Language, programsOf, python, runGuideProgram } from './guide-programs.ts';
import { newFolder, root } from './tree.ts';

describe('Getting started with JavaScript', () => {
  runsPrograms('getting-started-javascript.md', javascript, (folder) => installedIn(folder, '@azure', 'holdfast'));
});

describe('Getting started with Python', () => {
  runsPrograms('getting-started-python.md', python, () => {}, noPythonSdk);
});

function runsPrograms(page: string, language: Language, prepare: (folder: string) => void, missing?: string): void {
  const programs = programsOf(page, language);
  let server: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    server = await start({ inMemory: true, blobPort: 0 });
  });
  afterAll(() => server.stop());

  it('has programs', () => {
    expect(programs.length).toBeGreaterThanOrEqual(4);
  });

  it.for(programs.map((program) => [program.line, program] as const))(
    'has a program at line %i that runs and prints what the page says',
    async ([, program], context) => {
      if (missing) return context.skip(missing);
      const folder = newFolder();
      prepare(folder);
      const printed = await runGuideProgram(language, program, { folder, connectionString: server.connectionString });
      if (program.prints !== undefined) expect(printed).toBe(program.prints);
    },
  );
}

describe('The tables of flags', () => {
  const ours = [...helpText().matchAll(/^ {2}(?:-\w, | {4})(--[\w-]+)/gm)].map(([, flag = '']) => flag);
  const table = (file: string) =>
    readFileSync(join(root, file), 'utf8')
      .match(/^\| `-.*$/gm)
      ?.join('\n') ?? '';

  it('name every flag in the README', () => {
    const named = table('README.md');
    expect(ours.length).toBeGreaterThan(15);
    expect(ours.filter((flag) => !named.includes(flag))).toEqual([]);
  });

  it('name every flag of Azurite in the page about migrating, and each that is taken exists', () => {
    const named = [...table('docs/guide/migrating-from-azurite.md').matchAll(/--[a-zA-Z]+/g)].map(([flag]) => flag);
    expect(named.length).toBeGreaterThan(20);
    const others = named.filter((flag) => !ours.includes(flag) && !/^--(queue|table)/.test(flag));
    expect(others).toEqual([]);
  });
});

describe('The connection strings', () => {
  const page = readFileSync(join(root, 'docs', 'guide', 'connection-strings.md'), 'utf8');
  const strings = [...page.matchAll(/^DefaultEndpointsProtocol=.*$/gm)].map(([line]) => line);

  it('are all kinds', () => {
    expect(strings).toHaveLength(5);
  });

  it.each(strings)('are read by the SDK: %s', (line) => {
    const { url, accountName, credential } = BlobServiceClient.fromConnectionString(line);
    expect(url.replace(/\/$/, '')).toBe(/BlobEndpoint=([^;]*)/.exec(line)?.[1]);
    expect(accountName).toBe(/AccountName=([^;]*)/.exec(line)?.[1]);
    expect((credential as StorageSharedKeyCredential).accountName).toBe(accountName);
  });

  it('lead to a server of these accounts, where the account is in the path', async () => {
    const accounts = strings.map((line) => {
      const [, name = '', key = ''] = /AccountName=([^;]*);AccountKey=([^;]*)/.exec(line) ?? [];
      return { name, keys: [key] };
    });
    const distinct = [...new Map(accounts.map((account) => [account.name, account])).values()];
    const server = await start({ inMemory: true, blobPort: 0, accounts: distinct });
    const { host } = new URL(server.blobUrl);
    const usual = strings.filter((line) => line.includes('=http://127.0.0.1:10000/'));
    expect(usual).toHaveLength(3);
    for (const line of usual) {
      const service = BlobServiceClient.fromConnectionString(line.replaceAll('127.0.0.1:10000', host));
      expect((await service.getContainerClient('container').createIfNotExists()).errorCode ?? 'made').toMatch(
        /^(made|ContainerAlreadyExists)$/,
      );
    }
    await server.stop();
  });
});

/** As after npm install. */
function installedIn(folder: string, ...packages: string[]): void {
  mkdirSync(join(folder, 'node_modules'));
  for (const name of packages) {
    const target = name === 'holdfast' ? root : join(root, 'node_modules', name);
    symlinkSync(target, join(folder, 'node_modules', name), 'junction');
  }
}
