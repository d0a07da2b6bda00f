/** The tests cannot build the Dockerfile; its lines are compared with the repository. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { start } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { azurite } from '../../src/cli/azurite-compat.ts';
import { parseCommand } from '../../src/cli/start-flags.ts';
import { resolveConfig } from '../../src/server/config.ts';
import { runProgram } from '../support/child-program.ts';
import { newFolder, root } from '../support/repository-copy.ts';

const steps = readFileSync(join(root, 'Dockerfile'), 'utf8')
  .replace(/\\\r?\n\s*/g, '')
  .split(/\r?\n/)
  .filter((line) => line !== '' && !line.startsWith('#'));
const bin: Record<string, string> = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).bin;

/** The argument of this instruction, in the last stage. */
function last(word: string): string {
  const stage = steps.slice(steps.findLastIndex((step) => step.startsWith('FROM ')));
  return (
    stage
      .findLast((step) => step.startsWith(`${word} `))
      ?.slice(word.length)
      .trim() ?? ''
  );
}

describe('The Dockerfile', () => {
  it('copies only what the repository has and .dockerignore lets through', () => {
    const copied = steps
      .filter((step) => step.startsWith('COPY ') && !step.includes('--from='))
      .flatMap((step) => step.split(' ').slice(1, -1));
    expect(copied).toContain('src');
    expect(copied.filter((path) => !existsSync(join(root, path)))).toEqual([]);
    const allowed = readFileSync(join(root, '.dockerignore'), 'utf8').split(/\r?\n/);
    expect(allowed[0]).toBe('*');
    expect(copied.filter((path) => !allowed.includes(`!${path.split('/')[0]}`))).toEqual([]);
  });

  it('uses one major version of Node, which the package allows', () => {
    const images = steps.filter((step) => step.startsWith('FROM ')).map((step) => step.split(' ')[1]);
    expect(images.length).toBeGreaterThan(1);
    expect(new Set(images)).toEqual(new Set(['node:22-slim']));
  });

  it('puts every executable of the package on the path, and makes it executable', () => {
    const run = steps.filter((step) => step.startsWith('RUN ')).join('\n');
    const links = [...run.matchAll(/ln -s \/holdfast\/(\S+) \/usr\/local\/bin\/(\S+)/g)];
    expect(Object.fromEntries(links.map(([, file, name]) => [name, file]))).toEqual(bin);
    expect(run).toContain('chmod +x /holdfast/dist/bin/*.js ');
    for (const file of Object.values(bin)) expect(file).toMatch(/^dist\/bin\/[^/]+\.js$/);
  });

  it('installs the client of PostgreSQL, which the package has only as an optional peer', () => {
    const installs = steps.filter((step) => step.startsWith('RUN npm ci --omit=dev'));
    expect(installs).toEqual([expect.stringContaining('npm install --no-save --save-prod --omit=dev "pg@$(')]);
    const [, version] = /\$\(node -p "(.*)"\)"/.exec(installs[0] ?? '') ?? [];
    const { stdout } = spawnSync(process.execPath, ['-p', version ?? ''], { cwd: root, encoding: 'utf8' });
    expect(stdout).toMatch(/^8\.\d+\.\d+\n$/);
  });

  it('leaves no package manager in the image', () => {
    expect(last('FROM')).not.toContain(' AS ');
    const final = steps.slice(steps.findLastIndex((step) => step.startsWith('FROM ')));
    expect(final.filter((step) => /\b(npm|npx|yarn) (ci|install|run|exec)/.test(step))).toEqual([]);
    for (const each of ['/usr/local/lib/node_modules', '/usr/local/bin/npm', '/usr/local/bin/npx'])
      expect(final.join('\n')).toMatch(new RegExp(`rm -rf .*${each}\\b`));
  });

  it('runs as root, as tools expect that know the image of Azurite, and lets any other user write to the volume', () => {
    expect(last('USER')).toBe('');
    expect(last('WORKDIR')).toBe('/data');
    expect(JSON.parse(last('VOLUME'))).toEqual(['/data']);
    expect(steps.join('\n')).toContain('mkdir -m 1777 /data');
  });

  it('starts by a command without an entry point, so that tools can name either', () => {
    expect(JSON.parse(last('ENTRYPOINT'))).toEqual([]);
    const [name, ...words] = JSON.parse(last('CMD')) as string[];
    expect(bin).toHaveProperty(name ?? '');
    const command = parseCommand(azurite.filterArguments(words).words, {});
    const hosts = {
      blobHost: '0.0.0.0',
      queueHost: '0.0.0.0',
      tableHost: '0.0.0.0',
      fileHost: '0.0.0.0',
      smbHost: '0.0.0.0',
    };
    expect(command).toMatchObject({ command: 'start', options: { ...hosts, location: '/data' } });
    expect(last('EXPOSE').split(' ')).toEqual(
      [...resolveConfig().endpoints, resolveConfig().smb!].map(({ port }) => String(port)),
    );
  });

  it('asks for the health of the server by a script that is in the image', () => {
    const [, command = ''] = last('HEALTHCHECK').split(' CMD ');
    expect(JSON.parse(command)).toEqual(['node', '/holdfast/health.mjs']);
    expect(steps.join('\n')).toMatch(/^COPY .*scripts\/health\.mjs.* \/holdfast\/$/m);
  });
});

describe('The health check', () => {
  const script = join(root, 'scripts', 'health.mjs');

  it('ends with 0 for a server that is ready, and with 1 for none', async () => {
    const server = await start({ inMemory: true, blobPort: 0 });
    const { port } = new URL(server.blobUrl);
    const healthy = runProgram(process.execPath, [script, port], { cwd: newFolder() });
    expect((await healthy.ended).code).toBe(0);
    await server.stop();
    expect(spawnSync(process.execPath, [script, port]).status).toBe(1);
  });

  it('ends with 0 if one of several services is ready, whichever an image was started for', async () => {
    const server = await start({ inMemory: true, tablePort: 0, services: ['table'] });
    const { port } = new URL(server.tableUrl);
    const healthy = runProgram(process.execPath, [script, '1', port], { cwd: newFolder() });
    expect((await healthy.ended).code).toBe(0);
    await server.stop();
    expect(spawnSync(process.execPath, [script, '1', port]).status).toBe(1);
  });

  it('ends with 0 for a server that serves HTTPS', async () => {
    const server = await start({ inMemory: true, blobPort: 0, https: 'auto' });
    const healthy = runProgram(process.execPath, [script, new URL(server.blobUrl).port], { cwd: newFolder() });
    expect((await healthy.ended).code).toBe(0);
    await server.stop();
  });
});
