/** A child process of a test, with its output so far. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';

export interface Program {
  stdout(): string;
  stderr(): string;
  /** Resolves when the output has this text; rejects when the program ends without it. */
  printed(text: string): Promise<void>;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

export function runProgram(
  file: string,
  words: readonly string[],
  { cwd, env = {}, uid }: { cwd: string; env?: Record<string, string>; uid?: number },
): Program {
  const { npm_lifecycle_event: _, AZURITE_ACCOUNTS: __, ...inherited } = process.env;
  const child = spawn(file, words, {
    cwd,
    env: { ...inherited, ...env },
    ...(uid !== undefined && { uid, gid: uid }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }));
  return {
    stdout: () => stdout,
    stderr: () => stderr,
    printed: async (text) => {
      while (!stdout.includes(text)) {
        const more = await Promise.race([once(child.stdout, 'data').then(() => true), ended.then(() => false)]);
        if (!more && !stdout.includes(text)) throw new Error(`It ended without "${text}": ${stdout}${stderr}`);
      }
    },
    kill: (signal) => void child.kill(signal),
    ended,
  };
}
