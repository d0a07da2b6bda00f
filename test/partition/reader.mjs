/** Reads rows that another process writes: for each message one snapshot, in which `left` and `right` must be equal. */
import { encodeKey, keysUnder } from '../../build/partition/keys.js';
import { openLmdbReadOnly } from '../../build/partition/lmdb/read-only.js';

const engine = openLmdbReadOnly(process.argv[2]);
process.on('message', async ({ hold }) => {
  const at = engine.snapshot();
  const [left, right] = await at.getMany(['left', 'right'].map((side) => encodeKey([side])));
  const rows = await at.scan(keysUnder(['row']), { limit: 10_000 });
  process.send({ left: String(left?.value), right: String(right?.value), rows: rows.length });
  if (!hold) at.end();
});
process.send('ready');
