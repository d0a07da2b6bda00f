/** holdfast account and holdfast sas, on a folder that a server uses and on one that none uses. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TableClient, TableServiceClient } from '@azure/data-tables';
import { BlobServiceClient, ContainerClient } from '@azure/storage-blob';
import { ShareServiceClient } from '@azure/storage-file-share';
import { QueueClient, QueueServiceClient } from '@azure/storage-queue';
import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { type Program, runProgram } from '../support/child-program.ts';
import { newFolder, root } from '../support/repository-copy.ts';

const READY = 'Azurite File service is successfully listening at ';
const DEVELOPMENT_KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

describe.each(['running', 'stopped'])('holdfast account on a %s server', (state) => {
  it('adds, lists, changes and removes accounts', async () => {
    const folder = newFolder();
    const server = await serverIn(folder);
    if (state === 'stopped') await stop(server);

    const added = await holdfast(folder, 'account', 'add', 'mine');
    expect(added).toMatch(/^account +mine\nkey 1 +\S{88}\nkey 2 +\S{88}\nconnection string +Default\S+\n$/);
    const origin = state === 'running' ? originOf(server) : 'http://127.0.0.1:10000';
    const [queues, tables, files] =
      state === 'running'
        ? [originOf(server, 'Queue'), originOf(server, 'Table'), originOf(server, 'File')]
        : ['http://127.0.0.1:10001', 'http://127.0.0.1:10002', 'http://127.0.0.1:10003'];
    expect(added).toContain(
      `;AccountName=mine;AccountKey=${keyIn(added)};BlobEndpoint=${origin}/mine;QueueEndpoint=${queues}/mine;TableEndpoint=${tables}/mine;FileEndpoint=${files}/mine;\n`,
    );

    const list = await holdfast(folder, 'account', 'list');
    expect(list).toMatch(/^devstoreaccount1 {2}\S+Z {2}1 key\nmine {14}\S+Z {2}2 keys\n$/);
    expect(await holdfast(folder, 'account', 'list', '--show-keys')).toContain(DEVELOPMENT_KEY);

    const kept = await holdfast(folder, 'account', 'set', 'mine', '--container-retention', '7');
    expect(kept).toBe('The account mine keeps deleted containers for 7 days.\n');
    const settings = JSON.parse(
      await holdfast(folder, 'account', 'set', 'mine', '--container-retention', '0', '--json'),
    );
    expect(settings).toEqual({ name: 'mine', containerRetentionDays: 0, shareRetentionDays: 0 });
    const shares = await holdfast(folder, 'account', 'set', 'mine', '--share-retention', '1');
    expect(shares).toBe('The account mine keeps deleted shares for one day.\n');

    const rotated = await holdfast(folder, 'account', 'rotate-key', 'mine', '--which', '2', '--json');
    const { keys, connectionString } = JSON.parse(rotated) as { keys: string[]; connectionString: string };
    expect(keys[0]).toBe(keyIn(added));
    expect(added).not.toContain(keys[1]);

    if (state === 'stopped') await stop(await serverIn(folder, '--blobPort', '0'));
    const second = state === 'running' ? server : await serverIn(folder);
    const moved = connectionString.replace(origin, originOf(second)).replace(queues, originOf(second, 'Queue'));
    await BlobServiceClient.fromConnectionString(moved).getContainerClient('box').create();
    await QueueServiceClient.fromConnectionString(moved).createQueue('line');
    await BlobServiceClient.fromConnectionString(moved).getContainerClient('box').delete();
    if (state === 'stopped') await stop(second);

    // A queue is enough.
    expect(await refused(folder, 'account', 'remove', 'mine')).toContain(
      'has containers, queues, tables or shares, or deleted ones that can be restored: --with-data',
    );
    expect(await holdfast(folder, 'account', 'remove', 'mine', '--with-data')).toBe('The account mine is removed.\n');
    const left = JSON.parse(await holdfast(folder, 'account', 'list', '--json')) as {
      name: string;
      keyCount: number;
    }[];
    expect(left).toMatchObject([{ name: 'devstoreaccount1', keyCount: 1, isServed: true }]);
    expect(JSON.stringify(left)).not.toContain(DEVELOPMENT_KEY);
  });

  it('refuses in one line what cannot be done', async () => {
    const folder = newFolder();
    const server = await serverIn(folder);
    if (state === 'stopped') await stop(server);
    expect(await refused(folder, 'account', 'add', 'devstoreaccount1')).toContain(
      'There is an account devstoreaccount1',
    );
    expect(await refused(folder, 'account', 'add', 'a/b')).toContain('an account name is');
    expect(await refused(folder, 'account', 'add', 'mine', '--key', '!')).toContain('key 1 is not base64');
    expect(await refused(folder, 'account', 'remove', 'nobody')).toContain('There is no account nobody');
    expect(await refused(folder, 'account', 'rotate-key', 'nobody')).toContain('There is no account nobody');
    expect(await refused(folder, 'sas', '--account', 'nobody')).toContain('There is no account nobody');
  });
});

describe('holdfast account', () => {
  it('reports a missing folder, and creates none', async () => {
    const folder = newFolder();
    for (const words of [['list'], ['add', 'mine'], ['remove', 'mine']])
      expect(await refused(folder, 'account', ...words)).toMatch(/no data of Holdfast in .*holdfast-data.*in memory/);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is not led astray by what a killed server has left', async () => {
    const folder = newFolder();
    const server = await serverIn(folder);
    server.kill('SIGKILL');
    await server.ended;
    expect(readdirSync(join(folder, 'holdfast-data'))).toContain('admin.json');
    expect(await holdfast(folder, 'account', 'list')).toContain('devstoreaccount1');
  });

  it('is not led astray by another server that has the port now', async () => {
    const [folder, other] = [newFolder(), newFolder()];
    await stop(await serverIn(folder));
    const { url } = adminIn(other, await serverIn(other));
    writeFileSync(join(folder, 'holdfast-data', 'admin.json'), JSON.stringify({ url, token: 'of an earlier start' }));
    await holdfast(folder, 'account', 'add', 'mine');
    expect(await holdfast(folder, 'account', 'list')).toContain('mine');
    expect(await holdfast(other, 'account', 'list')).not.toContain('mine');
  });

  it('names the process that uses the folder if it cannot ask the server', async () => {
    const folder = newFolder();
    await serverIn(folder);
    writeFileSync(join(folder, 'holdfast-data', 'admin.json'), 'damaged');
    expect(await refused(folder, 'account', 'list')).toMatch(/in use by another Holdfast \(process \d+/);
  });

  it('removes all or nothing, wherever the server is killed', async () => {
    for (let round = 0; round < 4; round++) {
      const folder = newFolder();
      const server = await serverIn(folder);
      const { connectionString } = JSON.parse(await holdfast(folder, 'account', 'add', 'mine', '--json'));
      const service = BlobServiceClient.fromConnectionString(connectionString);
      for (let box = 0; box < 5; box++) {
        const container = service.getContainerClient(`box-${box}`);
        await container.create();
        await container.getBlockBlobClient('blob').uploadData(Buffer.alloc(20_000, 'x'));
      }
      const { url, token } = adminIn(folder, server);
      const headers = { authorization: `Bearer ${token}` };
      const removal = fetch(`${url}/_holdfast/accounts?name=mine&withData=true`, { method: 'DELETE', headers });
      const answered = removal.then(
        (answer) => answer.status === 204,
        () => false,
      );
      if (round === 0) await answered;
      else for (let turn = 0; turn < round * 3; turn++) await new Promise(setImmediate);
      server.kill('SIGKILL');
      await server.ended;

      const location = join(folder, 'holdfast-data');
      const isThere = (await holdfast(folder, 'account', 'list')).includes('mine');
      if (await answered) expect(isThere).toBe(false);
      expect((await check(location)).findings).toEqual([]);
      const next = await serverIn(folder);
      const blobs = async () => (await check(location)).blobs;
      if (isThere) expect(await blobs()).toBe(5);
      else await expect.poll(blobs, { timeout: 20_000 }).toBe(0);
      await stop(next);
      const report = await check(location);
      expect([report.containers, report.findings]).toEqual([isThere ? 5 : 0, []]);
    }
  }, 120_000);
});

describe('holdfast sas', () => {
  it('prints URLs that open an account, a container and a blob, and nothing else', async () => {
    const folder = newFolder();
    const server = await serverIn(folder);
    const ofAccount = await sas(folder, '--services', 'b', '--permissions', 'rwlc', '--expiry', '7d');
    const account = new BlobServiceClient(ofAccount);
    const { containerClient } = await account.createContainer('box');
    await containerClient.getBlockBlobClient('a folder/ä+blob').uploadData(Buffer.from('abc'));

    const container = new ContainerClient(await sas(folder, '--container', 'box'));
    const names: string[] = [];
    for await (const { name } of container.listBlobsFlat()) names.push(name);
    expect(names).toEqual(['a folder/ä+blob']);
    const readOnly = await sas(folder, '-c', 'box', '-p', 'r');
    expect((await fetch(`${readOnly}&restype=container&comp=list`)).status).toBe(403);

    const blob = await sas(folder, '--container', 'box', '--blob', 'a folder/ä+blob', '--ip', '127.0.0.1');
    expect(blob).toContain(`${originOf(server)}/devstoreaccount1/box/a%20folder/%C3%A4%2Bblob?`);
    expect(await (await fetch(blob)).text()).toBe('abc');
    expect((await fetch(blob, { method: 'DELETE' })).status).toBe(403);
    for (const flags of [['--start', '1h'], ['--https-only'], ['--ip', '10.0.0.1'], ['--expiry', '2020-01-01']]) {
      const words = ['--container', 'box', '--blob', 'a folder/ä+blob', ...flags];
      expect((await fetch(await sas(folder, ...words))).status).toBe(403);
    }
  });

  it('prints a URL for each service of an account', async () => {
    const folder = newFolder();
    const server = await serverIn(folder);
    const urls = (await sas(folder, '-p', 'rwlac')).split('\n');
    const [blobs = '', queues = '', tables = '', files = '', ...more] = urls;
    expect(more).toEqual([]);
    expect(urls.map((url) => url.split('?')[0])).toEqual(
      ['Blob', 'Queue', 'Table', 'File'].map((service) => `${originOf(server, service)}/devstoreaccount1/`),
    );
    await new BlobServiceClient(blobs).createContainer('box');
    await new QueueServiceClient(queues).createQueue('line');
    await new TableServiceClient(tables, { allowInsecureConnection: true }).createTable('people');
    await new ShareServiceClient(files).createShare('docs');
    const two = await sas(folder, '--services', 'tq');
    expect(two.match(/:\d+(?=\/)/g)).toEqual([queues, tables].map((url) => `:${new URL(url).port}`));
    expect((await fetch(blobs.replace(/\?.*/, `?comp=list&${two.split('\n')[0]?.split('?')[1]}`))).status).toBe(403);
  });

  it('signs for a share and for a file', async () => {
    const folder = newFolder();
    const server = await serverIn(folder);
    const [files = ''] = (await sas(folder, '--services', 'f', '-p', 'rwlac')).split('\n');
    const share = new ShareServiceClient(files).getShareClient('docs');
    await share.create();
    await share.createDirectory('notes');
    await share.getDirectoryClient('notes').getFileClient('a b.txt').uploadData(Buffer.from('Hello'));
    const listed = await sas(folder, '--share', 'docs');
    expect(listed).toMatch(new RegExp(`^${originOf(server, 'File')}/devstoreaccount1/docs\\?sv=\\S+sr=s&sig=`));
    expect((await fetch(`${listed}&restype=directory&comp=list`)).status).toBe(200);
    const url = await sas(folder, '--share', 'docs', '--file', 'notes/a b.txt');
    expect(await (await fetch(url)).text()).toBe('Hello');
    expect((await fetch(url.replace('a%20b.txt', 'other'))).status).toBe(403);
  });

  it('prints the query alone, or a connection string', async () => {
    const folder = newFolder();
    await serverIn(folder);
    const token = await sas(folder, '--as', 'token', '-p', 'rwlac');
    expect(token).toMatch(/^sv=[^?\n]*&sig=[^?\n]*$/);
    const connection = await sas(folder, '--as', 'connection-string', '-p', 'rwlac');
    expect(connection).toMatch(
      /^BlobEndpoint=\S+;QueueEndpoint=\S+;TableEndpoint=\S+;FileEndpoint=\S+;SharedAccessSignature=sv=\S+$/,
    );
    await BlobServiceClient.fromConnectionString(connection).createContainer('box');
    await QueueServiceClient.fromConnectionString(connection).createQueue('line');
    await TableServiceClient.fromConnectionString(connection, { allowInsecureConnection: true }).createTable('people');
  });

  it('opens a queue, for what its permissions say', async () => {
    const folder = newFolder();
    await serverIn(folder);
    const all = new QueueServiceClient(await sas(folder, '--services', 'q', '-p', 'cw'));
    await all.createQueue('line');
    await all.createQueue('other');
    await new QueueClient(await sas(folder, '--queue', 'line', '-p', 'a')).sendMessage('hello');
    const reading = new QueueClient(await sas(folder, '-q', 'line'));
    expect((await reading.peekMessages()).peekedMessageItems.map(({ messageText }) => messageText)).toEqual(['hello']);
    await expect(reading.sendMessage('no')).rejects.toMatchObject({ statusCode: 403 });
    const elsewhere = (await sas(folder, '-q', 'line')).replace('/line?', '/other?');
    await expect(new QueueClient(elsewhere).peekMessages()).rejects.toMatchObject({ statusCode: 403 });
    expect(await new QueueClient(await sas(folder, '-q', 'line', '-p', 'p')).receiveMessages()).toMatchObject({
      receivedMessageItems: [{ messageText: 'hello' }],
    });
  });

  it('opens a table, or a range of its entities', async () => {
    const folder = newFolder();
    await serverIn(folder);
    const insecure = { allowInsecureConnection: true };
    const open = async (...words: string[]) =>
      TableClient.fromConnectionString(await sas(folder, '--as', 'connection-string', ...words), 'People', insecure);
    await (await open('--services', 't', '-p', 'c')).createTable();
    const writing = await open('--table', 'People', '-p', 'a');
    for (const partitionKey of ['ada', 'bob', 'eve']) await writing.createEntity({ partitionKey, rowKey: '1' });
    const keys = async (table: TableClient) => {
      const found: unknown[] = [];
      for await (const { partitionKey } of table.listEntities()) found.push(partitionKey);
      return found;
    };
    expect(await keys(await open('-t', 'people'))).toEqual(['ada', 'bob', 'eve']);
    expect(await keys(await open('-t', 'People', '--start-pk', 'b', '--end-pk', 'c'))).toEqual(['bob']);
    await expect((await open('-t', 'People')).createEntity({ partitionKey: 'x', rowKey: '' })).rejects.toMatchObject({
      statusCode: 403,
    });
    const answer = await fetch(await sas(folder, '-t', 'People'), { headers: { Accept: 'application/json' } });
    expect(((await answer.json()) as { value: unknown[] }).value).toHaveLength(3);
  });

  it('says that a service is missing where the server that runs has none', async () => {
    const folder = newFolder();
    const only = runProgram(process.execPath, [join(root, 'dist', 'bin', 'azurite-queue.js'), '--queuePort', '0'], {
      cwd: folder,
    });
    await only.printed('is successfully listening at ');
    expect(await refused(folder, 'sas', '--table', 'people')).toContain(
      'has no table service: say where one is by --table-url',
    );
    expect(await sas(folder)).toMatch(/^http:\S+$/);
    expect(await sas(folder, '-t', 'people', '--table-url', 'http://t/a')).toContain('http://t/a/people?');
    expect(await sas(folder, '-t', 'people', '--as', 'token')).toContain('tn=people');
  });

  it('signs with a stored access policy', async () => {
    const folder = newFolder();
    const server = await serverIn(folder);
    const service = BlobServiceClient.fromConnectionString(
      `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=${DEVELOPMENT_KEY};BlobEndpoint=${originOf(server)}/devstoreaccount1;`,
    );
    const { containerClient } = await service.createContainer('box');
    await containerClient.getBlockBlobClient('blob').uploadData(Buffer.from('abc'));
    const url = await sas(folder, '--container', 'box', '--blob', 'blob', '--policy', 'readers');
    expect((await fetch(url)).status).toBe(403);
    const accessPolicy = { permissions: 'r', startsOn: new Date(0), expiresOn: new Date(Date.now() + 3_600_000) };
    await containerClient.setAccessPolicy(undefined, [{ id: 'readers', accessPolicy }]);
    expect((await fetch(url)).status).toBe(200);
  });

  it('reads the key of a stopped server from its folder, or uses the default account without any', async () => {
    const folder = newFolder();
    const bare = await sas(folder, '--blob-url', 'https://example.test/devstoreaccount1/', '--container', 'box');
    expect(bare).toMatch(/^https:\/\/example\.test\/devstoreaccount1\/box\?sv=/);
    expect(readdirSync(folder)).toEqual([]);
    expect(await refused(folder, 'sas', '--account', 'mine')).toContain('There is no folder');

    await stop(await serverIn(folder));
    await holdfast(folder, 'account', 'add', 'mine');
    const urls = (await sas(folder, '--account', 'mine', '--permissions', 'rl')).split('\n');
    expect(urls.map((each) => each.split('?')[0])).toEqual([
      'http://127.0.0.1:10000/mine/',
      'http://127.0.0.1:10001/mine/',
      'http://127.0.0.1:10002/mine/',
      'http://127.0.0.1:10003/mine/',
    ]);
    const [url = ''] = urls;
    const server = await serverIn(folder);
    const answer = await fetch(url.replace('http://127.0.0.1:10000', originOf(server)).replace('/?', '/?comp=list&'));
    expect(answer.status).toBe(200);
  });

  const bad: [words: string[], fault: string][] = [
    [['--blob', 'b'], '--blob needs --container'],
    [['--policy', 'p'], '--policy needs --container'],
    [['--container', 'c', '--services', 'b'], 'of an account'],
    [['--expiry', 'soon'], '--expiry is a time'],
    [['--expiry', '2030-02-31'], '--expiry is a time'],
    [['--permissions', 'q'], '--permissions is nothing'],
    [['--services', 'z'], '--services are letters'],
    [
      ['--queue', 'q', '--permissions', 'pr'],
      '--permissions is nothing that a signature takes: its letters come in the order raup',
    ],
    [['--table', 't', '--permissions', 'rl'], 'in the order raud'],
    [['--resource-types', 'z'], '--resource-types is nothing'],
    [['--ip', 'here'], '--ip is nothing'],
    [['--blob-url', 'ftp://x'], '--blob-url is a URL'],
    [['extra'], 'Unexpected extra'],
  ];
  it.each(bad)('refuses %j', async (words, fault) => {
    expect(await refused(newFolder(), 'sas', ...words)).toContain(fault);
  });
});

function start(cwd: string, ...words: string[]): Program {
  return runProgram(process.execPath, [join(root, 'dist', 'bin', 'holdfast.js'), ...words], { cwd });
}

async function serverIn(cwd: string, ...words: string[]): Promise<Program> {
  const program = start(cwd, '--blobPort', '0', ...words);
  await program.printed(READY);
  return program;
}

async function stop(program: Program): Promise<void> {
  program.kill('SIGTERM');
  expect(await program.ended).toEqual({ code: 0, signal: null });
}

/** The output of a command. */
async function holdfast(cwd: string, ...words: string[]): Promise<string> {
  const program = start(cwd, ...words);
  const { code } = await program.ended;
  expect([code, program.stderr()]).toEqual([0, '']);
  return program.stdout();
}

/** The one line of a command that fails. */
async function refused(cwd: string, ...words: string[]): Promise<string> {
  const program = start(cwd, ...words);
  expect((await program.ended).code).toBe(1);
  expect(program.stdout()).toBe('');
  expect(program.stderr()).toMatch(/^holdfast: [^\n]+\.\n$/);
  return program.stderr();
}

async function sas(cwd: string, ...words: string[]): Promise<string> {
  return (await holdfast(cwd, 'sas', ...words)).trimEnd();
}

function originOf(program: Program, service = 'Blob'): string {
  return new RegExp(`${service} service is successfully listening at (\\S+)`).exec(program.stdout())![1]!;
}

function keyIn(text: string): string {
  return /key 1 +(\S+)/.exec(text)![1]!;
}

function adminIn(cwd: string, _running: Program): { url: string; token: string } {
  return JSON.parse(readFileSync(join(cwd, 'holdfast-data', 'admin.json'), 'utf8'));
}
