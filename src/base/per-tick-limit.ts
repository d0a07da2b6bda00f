/** So many at most in one turn of the event loop; the others come in the next ones, in their order. */
export function turnsOf(abreast: number): () => Promise<void> | undefined {
  const waiting: (() => void)[] = [];
  let taken = 0;

  function nextTurn(): void {
    const released = waiting.splice(0, abreast);
    taken = released.length;
    if (taken > 0) setImmediate(nextTurn);
    for (const release of released) release();
  }

  return () => {
    if (taken === 0) setImmediate(nextTurn);
    if (taken < abreast && waiting.length === 0) {
      taken++;
      return undefined;
    }
    return new Promise((resolve) => waiting.push(resolve));
  };
}
