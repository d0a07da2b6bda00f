/** Servers in processes of their own on one PostgreSQL and one folder of bytes. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { BlobServiceClient, newPipeline, StorageSharedKeyCredential } from '@azure/storage-blob';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { activeEpochs } from '../../src/content/membership/epochs.ts';
import { openPostgres } from '../../src/partition/postgres/engine.ts';
import { openPartition } from '../../src/partition/transact.ts';
import { type Program, runProgram } from '../support/child-program.ts';
import { newFolder } from '../support/disposable-servers.ts';
import { type Cluster, missing, startCluster } from '../support/postgres-cluster.ts';
import { account, accountKey } from '../support/test-server.ts';

const cli = fileURLToPath(new URL('../../dist/bin/holdfast.js', import.meta.url));
const cwd = tmpdir();

interface Server {
  readonly program: Program;
  readonly url: string;
  readonly service: BlobServiceClient;
}

describe.skipIf(missing)('Servers that share a store', () => {
  let cluster: Cluster;
  let extents: string;
  beforeAll(async () => {
    cluster = await startCluster();
    extents = mkdtempSync(join(tmpdir(), 'holdfast-extents-'));
  });
  afterAll(async () => {
    await cluster?.drop();
    rmSync(extents, { recursive: true, force: true });
  });

  const run = (words: readonly string[], env = {}) => runProgram(process.execPath, [cli, ...words], { cwd, env });
  const shared = () => ['--partition', cluster.url, '--extents', extents];

  async function serve(): Promise<Server> {
    const program = run(['start', '--blobPort', '0', ...shared()]);
    await program.printed('connection string');
    const url = /blob service +(\S+)/.exec(program.stdout())![1]!;
    return { program, url, service: clientOf(url) };
  }

  async function check(): Promise<string> {
    const checking = run(['check', ...shared()]);
    const { code } = await checking.ended;
    return code === 0 ? 'in order' : checking.stdout() + checking.stderr();
  }

  async function stop({ program }: Server): Promise<void> {
    program.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 0, signal: null });
  }

  it('show each what the others have stored, and know accounts that come and go', async () => {
    const servers = [await serve(), await serve(), await serve()];
    const [one, two, three] = servers as [Server, Server, Server];
    const bytes = randomBytes(300_000);
    await one.service.getContainerClient('box').create();
    await two.service.getContainerClient('box').getBlockBlobClient('blob').upload(bytes, bytes.length);
    for (const { service } of servers) {
      const blob = service.getContainerClient('box').getBlobClient('blob');
      expect((await blob.downloadToBuffer()).equals(bytes)).toBe(true);
    }
    await three.service.getContainerClient('box').getBlobClient('blob').delete();
    expect(await one.service.getContainerClient('box').getBlobClient('blob').exists()).toBe(false);

    const added = run(['account', 'add', 'later', '--json', '--partition', cluster.url]);
    expect((await added.ended).code).toBe(0);
    const { keys } = JSON.parse(added.stdout()) as { keys: string[] };
    for (const { url } of servers) await until(() => mayList(url, 'later', keys[0]!));
    const env = { HOLDFAST_PARTITION: cluster.url };
    const removed = run(['account', 'remove', 'later'], env);
    expect((await removed.ended).code, removed.stderr()).toBe(0);
    for (const { url } of servers) await until(async () => !(await mayList(url, 'later', keys[0]!)));

    expect(await check()).toBe('in order');
    for (const server of servers) await stop(server);
  }, 60_000);

  it('go on when one is killed, and one that was stopped for a while begins anew by itself', async () => {
    const [one, two, three] = [await serve(), await serve(), await serve()];
    const container = one.service.getContainerClient('stopped');
    await container.create();
    const bytes = randomBytes(400_000);
    await two.service.getContainerClient('stopped').getBlockBlobClient('of two').upload(bytes, bytes.length);
    await three.service.getContainerClient('stopped').getBlockBlobClient('of three').upload(bytes, bytes.length);
    const partition = openPartition(await openPostgres({ url: cluster.url }));
    const living = async () => (await partition.read(activeEpochs)).size;
    expect(await living()).toBe(3);

    three.program.kill('SIGKILL');
    two.program.kill('SIGSTOP');
    await until(async () => (await living()) === 1, 60);
    expect((await container.getBlobClient('of two').downloadToBuffer()).equals(bytes)).toBe(true);
    expect((await container.getBlobClient('of three').downloadToBuffer()).equals(bytes)).toBe(true);
    two.program.kill('SIGCONT');
    const again = two.service.getContainerClient('stopped');
    await until(() =>
      again
        .getBlockBlobClient('later')
        .upload(bytes, bytes.length)
        .then(
          () => true,
          (error) => {
            // Or an idle connection that had expired meanwhile.
            expect([503, undefined]).toContain(error.statusCode);
            return false;
          },
        ),
    );
    expect(await living()).toBe(2);
    expect((await container.getBlobClient('later').downloadToBuffer()).equals(bytes)).toBe(true);
    expect((await again.getBlobClient('of three').downloadToBuffer()).equals(bytes)).toBe(true);
    expect(two.program.stdout()).toContain('declared this process dead');
    expect(await check()).toBe('in order');
    await stop(one);
    await stop(two);
    expect(await living()).toBe(0);
    await partition.close();
  }, 120_000);

  it('refuse a folder that is not theirs, and rows that cannot be had, in one line', async () => {
    const cases: [words: string[], line: RegExp][] = [
      [
        ['--partition', cluster.url, '--extents', newFolder()],
        /The bytes of this store are not in .*: it has no holdfast/,
      ],
      [['--partition', cluster.urlOf({ database: 'none' }), '--extents', extents], /has no database none/],
      [['--partition', 'postgres://127.0.0.1:1/x', '--extents', extents], /does not answer/],
    ];
    for (const [words, line] of cases) {
      const program = run(['start', '--blobPort', '0', ...words]);
      expect((await program.ended).code).toBe(1);
      expect(program.stderr()).toMatch(line);
      expect(program.stderr().trim().split('\n')).toHaveLength(1);
    }
  });
});

function clientOf(url: string, name = account, key = accountKey): BlobServiceClient {
  const credential = new StorageSharedKeyCredential(name, key);
  return new BlobServiceClient(url, newPipeline(credential, { retryOptions: { maxTries: 1 } }));
}

async function mayList(url: string, name: string, key: string): Promise<boolean> {
  try {
    await clientOf(`${new URL(url).origin}/${name}`, name, key)
      .listContainers()
      .next();
    return true;
  } catch {
    return false;
  }
}

async function until(isSo: () => Promise<boolean>, seconds = 20): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    if (tries > seconds * 5) throw new Error('it did not come to pass');
    await pause(200);
  }
}
