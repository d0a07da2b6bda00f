/** Where the compiled worker threads are. */
const sourceRoot = new URL('../', import.meta.url).href;

/**
 * The compiled worker thread beside a module: `compiledWorkerUrl(import.meta.url, './checkpoint-worker.ts')`.
 * Threads load JavaScript only, so a module that a test runs from its source gets the worker from build.
 */
export function compiledWorkerUrl(moduleUrl: string, name: string): URL {
  const worker = new URL(name.replace(/\.ts$/, '.js'), moduleUrl).href;
  if (!moduleUrl.endsWith('.ts')) return new URL(worker);
  return new URL(worker.slice(sourceRoot.length), new URL('../build/', sourceRoot));
}
