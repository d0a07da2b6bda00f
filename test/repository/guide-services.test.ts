/** The pages of the guide whose code is not a program: a fixture of pytest, the steps of a job, a unit of systemd. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runProgram } from '../support/child-program.ts';
import { debianPython, noPytest, noSystemd } from '../support/installed-tools.ts';
import { newFolder, root } from '../support/repository-copy.ts';
import { blockOf, installedIn } from './guide-programs.ts';

describe('The fixture of pytest', () => {
  it('starts a server for tests that move its clock', async (context) => {
    if (noPytest) return context.skip(noPytest);
    const folder = newFolder();
    installedIn(folder, 'holdfast');
    for (const file of ['conftest.py', 'test_leader.py'])
      writeFileSync(join(folder, file), blockOf('getting-started-python.md', `pytest ${file}`));
    const pytest = runProgram(debianPython, ['-m', 'pytest', '-p', 'no:cacheprovider'], { cwd: folder });
    expect({ ...(await pytest.ended), printed: pytest.stdout() }).toMatchObject({
      code: 0,
      printed: expect.stringContaining('2 passed'),
    });
  });
});

describe('The job of GitHub Actions', () => {
  const workflow = blockOf('github-actions.md', 'yaml');
  const steps = workflow.split(/^ {6}- /m).slice(1);
  const step = (name: string) =>
    steps.find((each) => each.includes(`name: ${name}`) || each.includes(`run: ${name}`)) ?? '';

  it('starts a server that the tests use, and checks its data', async () => {
    const folder = newFolder();
    installedIn(folder, '@azure', 'holdfast');
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ scripts: { test: 'node test.mjs' }, type: 'module' }));
    const ports = [await freePort(), await freePort(), await freePort()];
    const connection = `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=${KEY};BlobEndpoint=http://127.0.0.1:${ports[0]}/devstoreaccount1;`;
    // The name that stands for the usual ports leads to those of the test here.
    const variable = /(\w+): UseDevelopmentStorage=true/.exec(step('npm test'))?.[1] ?? '';
    writeFileSync(
      join(folder, 'test.mjs'),
      `import { BlobServiceClient } from '@azure/storage-blob';
const service = BlobServiceClient.fromConnectionString(process.env[${JSON.stringify(variable)}]);
await service.createContainer('one');
console.log('tested');
`,
    );
    const flags = ports.map((port, at) => `--${['blob', 'queue', 'table'][at]}Port ${port}`).join(' ');
    const starting = script(step('Start storage')).replace('npx holdfast', `npx holdfast ${flags}`);
    const commands = `set -e\n${starting}\nnpm test\n${script(step('Check the data'))}\ncat storage.log\nkill %1\nwait\n`;
    const job = runProgram('bash', ['-c', commands], {
      cwd: folder,
      env: { RUNNER_TEMP: join(folder, 'data-of-runner'), [variable]: connection },
    });
    expect({ ...(await job.ended), said: job.stderr() }).toMatchObject({ code: 0 });
    expect(job.stdout()).toContain('tested\n');
    expect(job.stdout()).toContain('1 container, ');
    expect(job.stdout()).toContain('"PUT /devstoreaccount1/one?restype=container HTTP/1.1" 201');
  });

  it('names a version of Node that the package allows', () => {
    const { node } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).engines;
    expect(Number(/node-version: (\d+)/.exec(workflow)?.[1])).toBeGreaterThanOrEqual(
      Number.parseInt(node.slice(2), 10),
    );
  });
});

describe('The unit of systemd', () => {
  const unit = blockOf('systemd.md', 'ini');

  it('is one that systemd takes', (context) => {
    if (noSystemd) return context.skip(noSystemd);
    const file = join(newFolder(), 'holdfast.service');
    writeFileSync(file, unit);
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
    expect({ status, said: stderr.split('\n').filter((line) => line.includes('holdfast.service')) }).toEqual({
      status: 0,
      said: [],
    });
  });

  it('has a command that serves from its folder, with its limit of files, and ends with 0 when it is stopped', async () => {
    const folder = newFolder();
    installedIn(folder, 'holdfast');
    const command = /^ExecStart=\/usr\/bin\/env (.*)$/m.exec(unit)?.[1] ?? '';
    const state = `/var/lib/${/^StateDirectory=(.*)$/m.exec(unit)?.[1]}`;
    expect(command).toContain(`--location ${state} `);
    const here = `${command.replace(state, join(folder, 'state'))} --blobPort 0`;
    const limit = /^LimitNOFILE=(\d+)$/m.exec(unit)?.[1];
    const program = runProgram('sh', ['-c', `ulimit -Sn ${limit}; exec ${here}`], {
      cwd: folder,
      env: { PATH: `${join(folder, 'node_modules', '.bin')}:${process.env.PATH}` },
    });
    await program.printed('Table service is successfully listening');
    program.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 0, signal: null });
  });
});

const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

/** The shell commands of a step. */
function script(step: string): string {
  const [, indented] = /run: \|\n([\s\S]*)$/.exec(step) ?? [];
  return (indented ?? /run: (.*)/.exec(step)?.[1] ?? '').replace(/^ +/gm, '').trim();
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
