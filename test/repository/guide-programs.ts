/** The programs of a page of the guide, run one after the other in files of one folder. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { debianPython } from '../../scripts/debian-packages.mjs';
import { root } from '../support/repository-copy.ts';

/** How the blocks of a language become programs. */
export interface Language {
  /** The word after the three backticks. */
  readonly block: string;
  /** The ending of the files. */
  readonly ending: string;
  readonly command: string;
}

export const javascript: Language = { block: 'js', ending: 'mjs', command: process.execPath };
export const python: Language = { block: 'python', ending: 'py', command: debianPython };

export interface GuideProgram {
  readonly text: string;
  /** The output according to the page: a block `text` right after the program. */
  readonly prints: string | undefined;
  /** Where it begins on the page. */
  readonly line: number;
}

export function programsOf(page: string, { block }: Language): readonly GuideProgram[] {
  const markdown = readFileSync(join(root, 'docs', 'guide', page), 'utf8').replaceAll('\r\n', '\n');
  const blocks = [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((match) => {
    const [all, language, text = ''] = match;
    return { language, text, start: match.index, end: match.index + all.length };
  });
  return blocks
    .map((each, index) => ({ ...each, next: blocks[index + 1] }))
    .filter(({ language }) => language === block)
    .map(({ text, next, start, end }) => {
      // A sentence between the two belongs to the output, another program does not.
      const prints = next?.language === 'text' && next.start - end < 200 ? next.text : undefined;
      return { text, prints, line: markdown.slice(0, start).split('\n').length };
    });
}

/** Runs one program in the folder; the connection string reaches it as it would reach a user's program. */
export async function runGuideProgram(
  { ending, command }: Language,
  { text, line }: GuideProgram,
  { folder, connectionString, env = {} }: { folder: string; connectionString: string; env?: Record<string, string> },
): Promise<string> {
  const file = join(folder, `line-${line}.${ending}`);
  writeFileSync(file, text);
  const { stdout } = await promisify(execFile)(command, [file], {
    cwd: folder,
    timeout: 25_000,
    env: { ...process.env, ...env, AZURE_STORAGE_CONNECTION_STRING: connectionString },
  });
  return stdout.replaceAll('\r\n', '\n');
}

/** The only block of a page with this word after the three backticks. */
export function blockOf(page: string, word: string): string {
  const markdown = readFileSync(join(root, 'docs', 'guide', page), 'utf8').replaceAll('\r\n', '\n');
  const blocks = markdown.split(/^```/m).filter((_, index) => index % 2 === 1);
  const found = blocks.filter((block) => block.startsWith(`${word}\n`));
  if (found.length !== 1) throw new Error(`${page} has ${found.length} blocks "${word}".`);
  return found[0]!.slice(word.length + 1);
}

/** As after npm install, with the command for npx. */
export function installedIn(folder: string, ...packages: string[]): void {
  mkdirSync(join(folder, 'node_modules', '.bin'), { recursive: true });
  for (const name of packages) {
    const target = name === 'holdfast' ? root : join(root, 'node_modules', name);
    symlinkSync(target, join(folder, 'node_modules', name), 'junction');
  }
  if (!packages.includes('holdfast')) return;
  chmodSync(join(root, 'dist', 'bin', 'holdfast.js'), 0o755);
  symlinkSync(join(root, 'dist', 'bin', 'holdfast.js'), join(folder, 'node_modules', '.bin', 'holdfast'));
}
