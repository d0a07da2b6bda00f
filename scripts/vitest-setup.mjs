/** Tests spawn dist/cli.js, start worker threads from build and import 'holdfast', which is dist/main.js. */
import { ensureBuilt } from './prepare.mjs';

export async function setup() {
  await ensureBuilt({ tolerant: true });
}
