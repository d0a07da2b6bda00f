/** What happens, told step by step. A step that ends otherwise than the story says ends the program. */

import type { SmbAddress } from './smb-client.ts';

/** The account that the story takes place in. */
export interface Account {
  readonly connectionString: string;
  /** Names of this run's container, table, queue and share: lower-case letters and digits, a letter first. */
  readonly prefix: string;
  /** Lets time pass for the service: a real account waits, a server for tests moves its clock. */
  pass(seconds: number): Promise<void>;
  /** Where file shares are served over SMB; undefined: the steps that need SMB are left out. */
  readonly smb?: Omit<SmbAddress, 'share'> | undefined;
}

export class Story {
  private readonly print: (line: string) => void;

  constructor(print: (line: string) => void) {
    this.print = print;
  }

  chapter(title: string): void {
    this.print(`\n${title}`);
  }

  /** A step that succeeds. */
  async step<Result>(text: string, act: () => Promise<Result>): Promise<Result> {
    const result = await act();
    this.print(`  ${text}.`);
    return result;
  }

  /** A step that the service must refuse with this status and code. */
  async refused(text: string, status: number, code: string, act: () => Promise<unknown>): Promise<void> {
    const seen = await act().then(
      () => 'success',
      (error: unknown) => describeRefusal(error),
    );
    const expected = `${status} ${code}`;
    if (seen !== expected) throw new Error(`${text}: expected ${expected}, the service answered ${seen}`);
    this.print(`  ${text}: refused, ${seen}.`);
  }

  /** A fact that the steps before have led to. */
  fact<Value extends string | number>(text: string, value: Value, expected: Value): void {
    if (value !== expected) throw new Error(`${text}: expected ${expected}, found ${value}`);
    this.print(`  ${text}: ${value}.`);
  }
}

interface Refusal {
  readonly statusCode?: number;
  readonly code?: string;
  /** Answers to HEAD have no body: there the code is in a header alone. */
  readonly response?: { readonly headers?: { get(name: string): string | undefined } };
  /** Of the Table service, whose SDK leaves the code in the parsed body. */
  readonly details?: { readonly odataError?: { readonly code?: string }; readonly errorCode?: string };
}

function describeRefusal(error: unknown): string {
  const { statusCode, code, details, response } = error as Refusal;
  if (statusCode === undefined) throw error;
  const found = details?.odataError?.code ?? details?.errorCode ?? code ?? response?.headers?.get('x-ms-error-code');
  return `${statusCode} ${found ?? 'without a code'}`;
}
