/**
 * Ends this process at once, as if the signal had not been caught: the parent sees the signal, a shell 128 and its number. Not
 * `process.exit`: that waits for all threads, and lmdb waits forever in a thread that is stopped during a transaction.
 */
export function endProcess(signal: NodeJS.Signals = 'SIGKILL'): never {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // Process 1 of a container ignores its own signals, but not an abort.
  process.abort();
}
