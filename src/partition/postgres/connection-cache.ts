/** Keeps connections with a finished transaction for a moment, so that the next snapshot commits it in its own round trip. */
import type { Connection, Pool } from './pool.ts';

/** How long a finished transaction waits for that. */
const SPARE_MILLISECONDS = 20;

export class ConnectionCache {
  private readonly pool: Pool;
  private readonly spare: { readonly connection: Connection; readonly timer: NodeJS.Timeout }[] = [];
  private readonly leaving = new Set<Promise<void>>();

  constructor(pool: Pool) {
    this.pool = pool;
  }

  /** `isOver`: the connection has a finished transaction, which the caller must commit first. */
  async take(): Promise<{ connection: Connection; isOver: boolean }> {
    const last = this.spare.pop();
    if (!last) return { connection: await this.pool.connect(), isOver: false };
    clearTimeout(last.timer);
    return { connection: last.connection, isOver: true };
  }

  recycle(connection: Connection): void {
    if (this.pool.waiting() > 0) {
      this.commitAndRelease(connection);
      return;
    }
    const timer = setTimeout(() => {
      this.spare.splice(
        this.spare.findIndex((each) => each.timer === timer),
        1,
      );
      this.commitAndRelease(connection);
    }, SPARE_MILLISECONDS);
    this.spare.push({ connection, timer });
  }

  async end(): Promise<void> {
    for (const { connection, timer } of this.spare.splice(0)) {
      clearTimeout(timer);
      this.commitAndRelease(connection);
    }
    await Promise.all(this.leaving);
  }

  private commitAndRelease(connection: Connection): void {
    const left = connection
      .query('commit')
      .then(
        () => connection.release(),
        () => connection.release(true),
      )
      .finally(() => this.leaving.delete(left));
    this.leaving.add(left);
  }
}
