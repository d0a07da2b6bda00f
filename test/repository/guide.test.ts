/** The programs in docs/guide do what the pages say. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TableClient, TableServiceClient } from '@azure/data-tables';
import { BlobServiceClient, type StorageSharedKeyCredential } from '@azure/storage-blob';
import { QueueServiceClient } from '@azure/storage-queue';
import { start } from 'holdfast';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { helpText } from '../../src/cli/start-flags.ts';
import { noPythonSdk, noPythonTables } from '../support/installed-tools.ts';
import { newFolder, root } from '../support/repository-copy.ts';
import { installedIn, javascript, type Language, programsOf, python, runGuideProgram } from './guide-programs.ts';

describe('Getting started with JavaScript', () => {
  runsPrograms('getting-started-javascript.md', javascript, (folder) => installedIn(folder, '@azure', 'holdfast'));
});

describe('Getting started with Python', () => {
  const missing = (text: string) => (text.includes('azure.data.tables') ? noPythonTables : noPythonSdk);
  runsPrograms('getting-started-python.md', python, () => {}, missing);
});

describe('Concurrency', () => {
  runsPrograms('concurrency.md', javascript, (folder) => installedIn(folder, '@azure', 'holdfast'));
});

describe('Snapshots of shares', () => {
  runsPrograms('share-snapshots.md', javascript, (folder) => installedIn(folder, '@azure', 'holdfast'));
});

describe('Seeding', () => {
  it('has a seed that can be applied', async () => {
    const [seed] = programsOf('seeding.md', { block: 'yaml', ending: 'yaml', command: '' });
    const folder = newFolder();
    for (const name of ['photos', 'site']) mkdirSync(join(folder, name));
    writeFileSync(join(folder, 'photos', 'cat.jpg'), 'a cat');
    writeFileSync(join(folder, 'site', 'index.html'), '<p>');
    writeFileSync(join(folder, 'seed.yaml'), seed!.text);
    const server = await start({ inMemory: true, blobPort: 0, seed: join(folder, 'seed.yaml') });
    const photos = BlobServiceClient.fromConnectionString(server.connectionString).getContainerClient('photos');
    const names: string[] = [];
    for await (const { name } of photos.listBlobsFlat()) names.push(name);
    expect(names).toEqual(['cat.jpg', 'hello.txt', 'index.html', 'pixel.png']);
    await server.stop();
  });
});

describe('The README', () => {
  it('has programs that run against a server where UseDevelopmentStorage=true looks for it, or bring their own', async () => {
    const server = await start({ inMemory: true, blobPort: 0 });
    const programs = programsOf(join('..', '..', 'README.md'), javascript);
    expect(programs.length).toBeGreaterThanOrEqual(4);
    for (const program of programs) {
      const folder = newFolder();
      installedIn(folder, '@azure', 'holdfast');
      const { connectionString } = server;
      const text = program.text.replaceAll(
        "'UseDevelopmentStorage=true'",
        'process.env.AZURE_STORAGE_CONNECTION_STRING',
      );
      const here = text.replace(
        /(TableClient\.fromConnectionString\([^)]*)\)/,
        '$1, { allowInsecureConnection: true })',
      );
      const printed = await runGuideProgram(javascript, { ...program, text: here }, { folder, connectionString });
      if (program.prints !== undefined) expect(printed).toBe(program.prints);
    }
    await server.stop();
  });

  it('has a program in Python that runs, too', async (context) => {
    if (noPythonSdk) return context.skip(noPythonSdk);
    const server = await start({ inMemory: true, blobPort: 0 });
    const [program, ...more] = programsOf(join('..', '..', 'README.md'), python);
    expect(more).toEqual([]);
    const { connectionString } = server;
    expect(await runGuideProgram(python, program!, { folder: newFolder(), connectionString })).toBe('Hello\n');
    await server.stop();
  });
});

function runsPrograms(
  page: string,
  language: Language,
  prepare: (folder: string) => void,
  missing: (text: string) => string | undefined = () => undefined,
): void {
  const programs = programsOf(page, language);
  let server: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    server = await start({ inMemory: true, blobPort: 0 });
  });
  afterAll(() => server.stop());

  it('has programs', () => {
    expect(programs.length).toBeGreaterThanOrEqual(3);
  });

  it.for(programs.map((program) => [program.line, program] as const))(
    'has a program at line %i that runs and prints what the page says',
    async ([, program], context) => {
      const reason = missing(program.text);
      if (reason) return context.skip(reason);
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

  it('name every flag of Azurite in the page about migrating, and each one that is listed as supported exists', () => {
    const named = [...table('docs/guide/migrating-from-azurite.md').matchAll(/--[a-zA-Z]+/g)].map(([flag]) => flag);
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((flag) => !ours.includes(flag))).toEqual([]);
  });
});

describe('The connection strings', () => {
  const page = readFileSync(join(root, 'docs', 'guide', 'connection-strings.md'), 'utf8');
  const strings = [...page.matchAll(/^DefaultEndpointsProtocol=.*$/gm)].map(([line]) => line);

  it('are all kinds', () => {
    expect(strings).toHaveLength(5);
  });

  it.each(strings)('are read by the SDKs: %s', (line) => {
    const endpoint = (service: string) => new RegExp(`;${service}Endpoint=([^;]*)`).exec(line)?.[1];
    for (const [service, client] of [
      ['Blob', BlobServiceClient.fromConnectionString(line)],
      ['Queue', QueueServiceClient.fromConnectionString(line)],
    ] as const) {
      expect(client.url.replace(/\/$/, '')).toBe(endpoint(service));
      expect(client.accountName).toBe(/AccountName=([^;]*)/.exec(line)?.[1]);
    }
    const { credential, accountName } = BlobServiceClient.fromConnectionString(line);
    expect((credential as StorageSharedKeyCredential).accountName).toBe(accountName);
    expect(TableServiceClient.fromConnectionString(line).url).toBe(endpoint('Table'));
  });

  it('lead to a server of these accounts, where the account is in the path', async () => {
    const accounts = strings.map((line) => {
      const [, name = '', key = ''] = /AccountName=([^;]*);AccountKey=([^;]*)/.exec(line) ?? [];
      return { name, keys: [key] };
    });
    const distinct = [...new Map(accounts.map((account) => [account.name, account])).values()];
    const server = await start({ inMemory: true, blobPort: 0, accounts: distinct });
    const usual = strings.filter((line) => line.includes('=http://127.0.0.1:10000/'));
    expect(usual).toHaveLength(3);
    for (const line of usual) {
      const here = [server.blobUrl, server.queueUrl, server.tableUrl].reduce(
        (text, url, at) => text.replaceAll(`127.0.0.1:1000${at}`, new URL(url).host),
        line,
      );
      expect(
        (await BlobServiceClient.fromConnectionString(here).getContainerClient('container').createIfNotExists())
          .errorCode ?? 'made',
      ).toMatch(/^(made|ContainerAlreadyExists)$/);
      await QueueServiceClient.fromConnectionString(here).createQueue('queue');
      await TableClient.fromConnectionString(here, 'table', { allowInsecureConnection: true }).createTable();
    }
    await server.stop();
  });
});
