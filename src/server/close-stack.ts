/** Closes resources in reverse order of opening, once; what AsyncDisposableStack does, which Node 20 lacks. */
export class CloseStack {
  private readonly closers: (() => unknown)[] = [];
  private closed: Promise<void> | undefined;

  /** @param close must not reject if later closers have to run: the first failure ends the closing */
  push(close: () => unknown): void {
    this.closers.push(close);
  }

  close(): Promise<void> {
    this.closed ??= (async () => {
      for (const close of this.closers.reverse()) await close();
    })();
    return this.closed;
  }
}
