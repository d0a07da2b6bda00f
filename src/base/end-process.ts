/**
 * Ends this process at once, as if the signal had not been caught: the parent sees the signal, a shell 128 and its number. Not
 * `process.exit`: that waits for all threads, and lmdb waits without end in one that is stopped amid a transaction.
 */
export function endProcess(signal: NodeJS.Signals = 'SIGKILL'): never {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // The first process of a container is spared by its own signals, but not by a fault.
  process.abort();
}
