import type { Engine } from '../../src/partition/partition.ts';

/** Reads take several turns of the event loop, so that transactions of clients in one process overlap. */
export function slowed(engine: Engine): Engine {
  let reads = 0;
  const wait = async () => {
    for (let left = (reads++ * 7) % 5; left > 0; left--) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    clock: engine.clock,
    commit: (data) => engine.commit(data),
    ...(engine.exclusive && { exclusive: (queueKey, work) => engine.exclusive!(queueKey, work) }),
    close: () => engine.close(),
    snapshot() {
      const snapshot = engine.snapshot();
      return {
        get now() {
          return snapshot.now;
        },
        ...(snapshot.group !== undefined && { group: snapshot.group }),
        get: (key) => wait().then(() => snapshot.get(key)),
        getMany: (keys) => wait().then(() => snapshot.getMany(keys)),
        scan: (range, options) => wait().then(() => snapshot.scan(range, options)),
        page: (range, options) => snapshot.page(range, options),
        end: () => snapshot.end(),
      };
    },
  };
}
