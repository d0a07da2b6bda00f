/** Flat combining: calls that wait for one queue key at the same time run as one transaction. */
import type { PendingTransaction } from './batch.ts';
import type { CombinedFunction, CombinedResult, Transaction } from './partition.ts';

interface Call<Input, Output> {
  readonly input: Input;
  readonly resolve: (value: Output) => void;
  readonly reject: (error: unknown) => void;
}

export class CombinedTransaction<Input, Output> implements PendingTransaction {
  attempts = 0;
  private readonly combined: CombinedFunction<Input, Output>;
  /** Complete before the first attempt: `lost` has a result for each. */
  private readonly calls: Call<Input, Output>[] = [];
  private weight = 0;
  private lost: readonly CombinedResult<Output>[] | undefined;

  constructor(combined: CombinedFunction<Input, Output>) {
    this.combined = combined;
  }

  /** Only a transaction that waits for its first attempt may be asked: its snapshot will be later than the call. */
  hasRoomFor(combined: CombinedFunction<Input, Output>, input: Input): boolean {
    if (this.combined !== combined || this.attempts > 0) return false;
    return this.weight + combined.weight(input) <= combined.weightMax;
  }

  add(call: Call<Input, Output>): void {
    this.calls.push(call);
    this.weight += this.combined.weight(call.input);
  }

  async fn(tx: Transaction): Promise<readonly CombinedResult<Output>[]> {
    const inputs = this.calls.map(({ input }) => input);
    this.lost = await this.combined.run(tx, inputs, this.lost);
    return this.lost;
  }

  resolve({ value }: { readonly value: unknown }): void {
    for (const [i, result] of (value as readonly CombinedResult<Output>[]).entries()) {
      if ('error' in result) this.calls[i]!.reject(result.error);
      else this.calls[i]!.resolve(result.value);
    }
  }

  reject(error: unknown): void {
    for (const call of this.calls) call.reject(error);
  }
}
