/** Tests spawn dist/bin/holdfast.js, start worker threads from build and import 'holdfast', which is dist/index.js. */
import { ensureBuilt } from './prepare.mjs';

export async function setup() {
  await ensureBuilt({ tolerant: true });
}
