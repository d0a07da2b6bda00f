/** Takes documents one by one, side by side or together, and reports those that cannot be taken. */

/** Each waits for a sync: at the same time they share syncs. */
const AT_ONCE = 8;

export interface FailureReport {
  /** This document could not be taken. */
  failed(name: string, error: unknown): void;
}

export async function attempt(name: string, report: FailureReport, take: () => Promise<unknown>): Promise<void> {
  try {
    await take();
  } catch (error) {
    report.failed(name, error);
  }
}

export async function atOnce<Item>(items: readonly Item[], take: (item: Item) => Promise<void>): Promise<void> {
  const waiting = items.values();
  const work = async () => {
    for (const item of waiting) await take(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** In one commit; if that is refused, each alone, so that one of them does not keep the others out. */
export async function together<Item extends { readonly name: string }>(
  items: readonly Item[],
  report: FailureReport,
  take: (items: readonly Item[]) => Promise<unknown>,
): Promise<void> {
  try {
    await take(items);
  } catch (error) {
    if (items.length === 1) report.failed(items[0]!.name, error);
    else for (const item of items) await together([item], report, take);
  }
}

export function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): readonly Item[][] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return [...groups.values()];
}
