/** A process on a store in PostgreSQL that runs commands: {id, action, given} → {id, value}. */
import { encodeKey, keysUnder } from '../../build/partition/keys.js';
import { openPostgres } from '../../build/partition/postgres/engine.js';
import { openPartition } from '../../build/partition/transact.js';

const bytes = Buffer.from('x');
const outcomes = { committed: 0, conflict: 0, unknown: 0 };
const resolved = (outcome) => outcomes[outcome]++;
const partition = openPartition(await openPostgres({ ...JSON.parse(process.argv[2]), onResolved: resolved }));

/** Long enough that another process sometimes interleaves. */
async function dawdle() {
  for (let turns = Math.floor(Math.random() * 4); turns > 0; turns--) await new Promise(setImmediate);
}

const actions = {
  async createChild(round) {
    const { value } = await partition.transact(encodeKey(['create', round]), async (tx) => {
      if (!(await tx.get(encodeKey(['parent', round])))) return 'no parent';
      await dawdle();
      tx.put(encodeKey(['child', round, 1]), bytes);
      return 'created';
    });
    return value;
  },

  async deleteParent(round) {
    const { value } = await partition.transact(encodeKey(['delete', round]), async (tx) => {
      if ((await tx.scan(keysUnder(['child', round]), { limit: 1 })).length > 0) return 'not empty';
      await dawdle();
      tx.remove(encodeKey(['parent', round]));
      return 'deleted';
    });
    return value;
  },

  /** Takers of seats write no common row. */
  async takeSeat({ round, taker }) {
    const { value } = await partition.transact(encodeKey(['taker', taker, round]), async (tx) => {
      if ((await tx.scan(keysUnder(['seat', round]), { limit: 1 })).length > 0) return false;
      await dawdle();
      tx.put(encodeKey(['seat', round, taker]), bytes);
      return true;
    });
    return value;
  },

  /** Clients that increment one row; returns the increments, and the most attempts of a transaction. */
  async count({ clients, times, apart = 0 }) {
    let reruns = 0;
    let done = 0;
    const row = encodeKey(['counter']);
    const client = async (_, number) => {
      for (let time = 0; time < times; time++) {
        let runs = 0;
        await partition.transact(apart ? encodeKey(['client', apart, number]) : row, async (tx) => {
          runs++;
          if (!apart) tx.put(row, Buffer.from(String(Number(String((await tx.get(row))?.value ?? 0)) + 1)));
          else tx.put(encodeKey(['client', apart, number]), Buffer.from(String(time + 1)));
          tx.add(encodeKey(['sum', number % 4]), 1n);
        });
        reruns = Math.max(reruns, runs - 1);
        done++;
      }
    };
    await Promise.all(Array.from({ length: clients }, client));
    return { done, reruns, outcomes };
  },

  now: async () => String(partition.clock.now()),
  end: () => partition.close(),
};

process.on('message', async ({ id, action, given }) => {
  try {
    process.send({ id, value: await actions[action](given) });
  } catch (error) {
    process.send({ id, error: String(error.stack) });
  }
  if (action === 'end') process.exit();
});
process.send('ready');
