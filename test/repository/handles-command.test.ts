/** holdfast handles, beside a server that has files open. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDirectory } from '../../src/services/file/directories.ts';
import { createFile } from '../../src/services/file/files.ts';
import { runProgram } from '../support/child-program.ts';
import { type HandleServer, openAs, startHandleServer } from '../support/handle-server.ts';
import { newFolder, root } from '../support/repository-copy.ts';

const NEW = { metadata: [], smb: {} };
const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
let server: HandleServer;

beforeAll(async () => {
  server = await startHandleServer({ location: folder });
  await server.files.getShareClient('team').create();
  await server.files.getShareClient('other').create();
  await createDirectory(server.storage, { share: 'team', path: 'docs', ...NEW });
  for (const path of ['docs/plan', 'notes'])
    await createFile(server.storage, { share: 'team', path, ...NEW, leaseId: undefined, length: 0, content: {} });
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function handles(...words: string[]): Promise<string> {
  const program = runProgram('node', ['dist/bin/holdfast.js', 'handles', ...words], { cwd: root });
  const { code } = await program.ended;
  return code === 0 ? program.stdout() : `refused: ${program.stderr()}`;
}

const at = ['--location', folder];

describe('holdfast handles', () => {
  it('lists what is open, and closes it', async () => {
    expect(await handles('list', ...at)).toBe('Nothing is open.\n');
    const plan = await openAs(server.storage, 'team', 'docs/plan', { access: 3, shareMode: 1 });
    await openAs(server.storage, 'team', 'notes', { access: 0, shareMode: 0 });
    const list = await handles('list', ...at);
    expect(list).toMatch(
      /^\d+ {2}team\/docs\/plan {2}Read\+Write, sharing Read {2}desk \(192\.0\.2\.7:50445\) {2}\S+Z$/m,
    );
    expect(list).toMatch(/^\d+ {2}team\/notes {2}attributes, sharing nothing /m);
    const shown = JSON.parse(await handles('list', 'team/docs', '--json', ...at));
    expect(shown).toMatchObject([
      { id: plan.handle.id.toString(), share: 'team', path: 'docs/plan', access: ['Read', 'Write'] },
    ]);
    expect(await handles('list', 'other', ...at)).toBe('Nothing is open.\n');
    expect(await handles('close', 'team/docs/plan', '--id', shown[0].id, ...at)).toBe('1 handle is closed.\n');
    expect(await handles('close', 'team', '--all', ...at)).toBe('0 handles are closed.\n');
    expect(await handles('close', 'team', '--all', '--recursive', '--json', ...at)).toBe('{"closed":1}\n');
    expect(await handles('list', ...at)).toBe('Nothing is open.\n');
  }, 120_000);

  it('says in one line what is wrong', async () => {
    expect(await handles('list', 'none', ...at)).toMatch(/^refused: holdfast: The specified share does not exist\.\n$/);
    expect(await handles('list', '--account', 'none', ...at)).toMatch(/There is no account none\.\n$/);
    expect(await handles('close', 'team', ...at)).toMatch(/handles close needs either --id <id> or --all\.\n$/);
    expect(await handles('list', '--location', newFolder())).toMatch(/There is no data of Holdfast in /);
  }, 120_000);
});
