import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { newTree, root, type Tree } from '../support/repository-copy.ts';

describe('The first command after a clone', () => {
  it('installs and builds what is missing, passes its arguments on, and does neither again', () => {
    const tree = treeWithGreeting({ installed: false });
    const npm = npmThatLinks(tree);

    const first = run(tree, { npm_execpath: npm });
    expect(first.stderr).toContain('installing packages');
    expect(first.stderr).toContain('building');
    expect(first.stdout).toBe('hello --location ./data\n');

    const second = run(tree, { npm_execpath: npm });
    expect(second).toMatchObject({ stdout: 'hello --location ./data\n', stderr: '', status: 0 });
    expect(readFileSync(join(tree.folder, 'npm-calls'), 'utf8')).toBe('ci\n');
  });

  it('installs again when the lock file names another version', () => {
    const tree = treeWithGreeting({ installed: true });
    const lock = JSON.parse(readFileSync(join(tree.folder, 'package-lock.json'), 'utf8'));
    lock.packages['node_modules/lmdb'].version = '0.0.1';
    tree.write('package-lock.json', JSON.stringify(lock));
    const { stderr } = run(tree, { npm_execpath: npmThatLinks(tree) });
    expect(stderr).toContain('installing packages');
  });

  it('reports a failed installation in one line', () => {
    const tree = treeWithGreeting({ installed: false });
    tree.write('npm-cli.js', 'process.exit(1)');
    const { status, stderr } = run(tree, { npm_execpath: join(tree.folder, 'npm-cli.js') });
    expect(status).toBe(1);
    expect(stderr.trim().split('\n').at(-1)).toBe('holdfast: npm ci failed. Is the network there?');
  });
});

describe('The build', () => {
  it('follows a changed source and leaves other files alone', () => {
    const tree = treeWithGreeting({ installed: true });
    run(tree);
    const untouched = join(tree.folder, 'build', 'word.js');
    const { mtimeMs } = statSync(untouched);
    tree.write('src/bin/holdfast.ts', greeting('good evening'));
    expect(run(tree).stdout).toContain('good evening');
    expect(statSync(untouched).mtimeMs).toBe(mtimeMs);
  });

  it('keeps nothing of a deleted source', () => {
    const tree = treeWithGreeting({ installed: true });
    tree.write('src/old/gone.ts', 'export const gone = true;\n');
    run(tree);
    expect(existsSync(join(tree.folder, 'build/old/gone.js'))).toBe(true);
    rmSync(join(tree.folder, 'src/old'), { recursive: true });
    run(tree);
    expect(existsSync(join(tree.folder, 'build/old/gone.js'))).toBe(false);
    expect(existsSync(join(tree.folder, 'dist/bin/holdfast.js'))).toBe(true);
  });

  it('does not run for a changed test', () => {
    const tree = treeWithGreeting({ installed: true });
    run(tree);
    tree.write('src/bin/holdfast.test.ts', 'export {};\n');
    expect(run(tree).stderr).toBe('');
  });

  it('bundles packages with their licences, except those that are installed beside it', () => {
    const tree = treeWithGreeting({ installed: true });
    tree.write(
      'src/bin/holdfast.ts',
      "import { pino } from 'pino';\nimport { open } from 'lmdb';\nconsole.log(typeof pino, typeof open);\n",
    );
    expect(run(tree).stdout).toBe('function function\n');
    const program = readFileSync(join(tree.folder, 'dist/bin/holdfast.js'), 'utf8');
    expect(program).toContain('from "lmdb"');
    expect(program).not.toMatch(/from "pino"|require\("pino"\)/);
    expect(readFileSync(join(tree.folder, 'dist/licences.txt'), 'utf8')).toMatch(/^pino \S+\n\nThe MIT License/m);
  });

  it('bundles no package without a licence', () => {
    const tree = treeWithGreeting({ installed: true });
    const manifest = JSON.parse(readFileSync(join(tree.folder, 'package.json'), 'utf8'));
    delete manifest.dependencies.saxes;
    tree.write('package.json', JSON.stringify(manifest));
    tree.write('src/bin/holdfast.ts', "import { SaxesParser } from 'saxes';\nconsole.log(typeof SaxesParser);\n");
    const { status, stderr } = run(tree);
    expect(status).toBe(1);
    expect(stderr).toContain('saxes has no licence');
  });

  it('stops the start at a type error, and succeeds once that is gone', () => {
    const tree = treeWithGreeting({ installed: true });
    tree.write('src/word.ts', "export const word: number = 'hello';\n");
    const { status, stdout, stderr } = run(tree);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain('src/word.ts');
    tree.write('src/word.ts', "export const word = 'hello';\n");
    expect(run(tree).stdout).toContain('hello');
  });
});

function treeWithGreeting(options: { installed: boolean }): Tree {
  const tree = newTree(options);
  tree.write('src/word.ts', "export const word = 'hello';\n");
  tree.write('src/bin/holdfast.ts', greeting());
  return tree;
}

function greeting(word?: string): string {
  const spoken = word ? JSON.stringify(word) : 'word';
  return `import { word } from '../word.ts';\nconsole.log(${spoken}, ...process.argv.slice(2), ...(word ? [] : ['']));\n`;
}

function run(tree: Tree, env?: Record<string, string>) {
  return tree.node(['scripts/run.mjs', 'dist/bin/holdfast.js', '--location', './data'], env);
}

/** In npm's place: notes the call and links the packages that are here. */
function npmThatLinks(tree: Tree): string {
  const packages = JSON.stringify(join(root, 'node_modules'));
  tree.write(
    'npm-cli.js',
    `import * as fs from 'node:fs';
fs.appendFileSync('npm-calls', process.argv[2] + '\\n');
if (!fs.existsSync('node_modules')) fs.symlinkSync(${packages}, 'node_modules', 'junction');
`,
  );
  return join(tree.folder, 'npm-cli.js');
}
