/** Runs a client that has the account's key among its words. The error of a run that failed does not show the key. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { accountKey } from './test-server.ts';

const run = promisify(execFile);

interface Printed {
  readonly stdout: string;
  readonly stderr: string;
}

export class ClientFailed extends Error implements Printed {
  override readonly name = 'ClientFailed';
  readonly stdout: string;
  readonly stderr: string;

  /** @param failed has the whole command in its message, and in a property */
  constructor(failed: Error & Partial<Printed>) {
    super(withoutKey(failed.message));
    this.stdout = withoutKey(failed.stdout ?? '');
    this.stderr = withoutKey(failed.stderr ?? '');
  }
}

const withoutKey = (text: string): string => text.replaceAll(accountKey, '(key)');

export function runClient(
  command: string,
  words: readonly string[],
  options: { readonly cwd?: string; readonly timeout?: number } = {},
): Promise<Printed> {
  return run(command, words, { timeout: 60_000, ...options }).catch((failed: Error) => {
    throw new ClientFailed(failed);
  });
}
