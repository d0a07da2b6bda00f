/**
 * One client of the Table service that writes by transactions and knows the expected state: what every answer confirmed, and at most one
 * request that was never answered, which happened as a whole or did not happen.
 */

/**
 * `serial` is that of the last replacement, `merged` that of the last merge after it.
 * @typedef {{ serial: string, merged: string | undefined, length: number, etag: string | undefined }} Entity
 * @typedef {Map<string, Entity> | undefined} World by row key; undefined: the table is not there
 * @typedef {ReturnType<import('../support/signed-client.mjs').connect>} Client
 * @typedef {ReturnType<import('../support/random.mjs').randomOf>} Random
 * @typedef {{ method: string, path: string, headers: Record<string, string>, body: string, change: (next: Map<string, Entity>, etag: string | undefined) => void }} Part
 * @typedef {{ ask: () => Promise<import('../support/signed-client.mjs').Answer>, status: number, inner?: number, change: (before: World, etags: string[]) => World }} Step
 */

const ROWS = 100;
const PARTITION = 'p';
const JSON_HEADERS = { accept: 'application/json', 'content-type': 'application/json' };

/** @param {number} number */
export function newTableWriter(number) {
  const table = `crash${number}`;
  /** @type {World} */
  let world;
  /** @type {Step | undefined} */
  let unanswered;
  /** Every ETag that was ever seen: no other write has it. @type {Set<string>} */
  const seen = new Set();
  let acknowledged = 0;
  let serial = 0;

  /** @param {Client} client @param {Random} random @returns {Step} */
  function newStep(client, random) {
    const found = world;
    if (!found) return createTable(client, table);
    if (random.chance(0.02)) return deleteTable(client, table);
    const mark = `${number}-${serial++}`;
    const count = random.chance(0.3) ? ROWS : 1 + random.below(ROWS);
    const lengthMax = random.chance(0.1) ? 20_000 : 400;
    const keys = Array.from({ length: count }, (_, at) => `r${at}`);
    // All that is there becomes one generation, or each entity has its own way.
    const isGeneration = random.chance(0.4);
    const parts = keys.map((key) => {
      const length = random.below(lengthMax);
      if (isGeneration) return replace(table, key, mark, length);
      const entity = found.get(key);
      if (!entity) return insert(table, key, mark, length);
      return random.oneOf([replace, merge, mergeIfMatch, remove])(table, key, mark, length, entity);
    });
    if (random.chance(0.2)) return alone(client, random.oneOf(parts));
    // A refusal of the last part undoes all before it.
    if (parts.length < ROWS && found.size > 0 && random.chance(0.15)) {
      const taken = [...found.keys()].find((key) => !keys.includes(key));
      if (taken) return refused(client, [...parts, insert(table, taken, mark, 1)]);
    }
    return together(client, parts);
  }

  /** @param {Step} step */
  async function take(step) {
    unanswered = step;
    const { status, headers, body } = await step.ask();
    const text = body.toString();
    const inner = [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map((one) => Number(one[1]));
    if (status !== step.status || inner.some((one) => one !== step.inner))
      throw new Error(`answered ${status} (${inner}), not ${step.status} (${step.inner}): ${text.slice(0, 2_000)}`);
    const etags = headers.etag ? [headers.etag] : [...text.matchAll(/^ETag: (.*?)\r?$/gm)].map((one) => one[1] ?? '');
    world = step.change(world && new Map(world), etags);
    for (const etag of etags) seen.add(etag);
    unanswered = undefined;
    acknowledged++;
  }

  return {
    acknowledged: () => acknowledged,

    /** Writes until the server is gone. @param {Client} client @param {Random} random */
    async write(client, random, isOver = () => false) {
      while (!isOver()) {
        try {
          await take(newStep(client, random));
        } catch (error) {
          if (/** @type {NodeJS.ErrnoException} */ (error).code || isOver()) return;
          throw error;
        }
      }
    },

    /** Differences between the server and the expected state, as text. @param {Client} client */
    async verify(client) {
      const found = await observe(client, table);
      const without = differences(table, world, found, seen);
      const possible = unanswered?.change(world && new Map(world), []);
      if (without.length > 0 && (!unanswered || differences(table, possible, found, seen).length > 0)) return without;
      world = found;
      for (const { etag } of found?.values() ?? []) if (etag) seen.add(etag);
      unanswered = undefined;
      return [];
    },

    /** @param {Client} client */
    async removeAll(client) {
      if (world) await take(deleteTable(client, table));
    },
  };
}

/** @param {Client} client @param {string} table @returns {Step} */
function createTable(client, table) {
  const body = Buffer.from(JSON.stringify({ TableName: table }));
  return {
    ask: () => client.send('POST', '/Tables', { headers: JSON_HEADERS, body }),
    status: 201,
    change: () => new Map(),
  };
}

/** @param {Client} client @param {string} table @returns {Step} */
function deleteTable(client, table) {
  return { ask: () => client.send('DELETE', `/Tables('${table}')`), status: 204, change: () => undefined };
}

/** @param {Client} client @param {Part} part @returns {Step} */
function alone(client, part) {
  const { method, path, headers, body } = part;
  return {
    ask: () => client.send(method, path, { headers: { ...JSON_HEADERS, ...headers }, body: Buffer.from(body) }),
    status: method === 'POST' ? 201 : 204,
    change: (world, etags) => changed(world, [part], etags),
  };
}

/** @param {Client} client @param {Part[]} parts @returns {Step} */
function together(client, parts) {
  return {
    ask: () => client.send('POST', '/$batch', batchOf(parts)),
    ...{ status: 202, inner: 204 },
    change: (world, etags) => changed(world, parts, etags),
  };
}

/** @param {Client} client @param {Part[]} parts @returns {Step} */
function refused(client, parts) {
  return {
    ask: () => client.send('POST', '/$batch', batchOf(parts)),
    status: 202,
    inner: 409,
    change: (world) => world,
  };
}

/** @param {World} world @param {Part[]} parts @param {string[]} etags of those parts that leave an entity */
function changed(world, parts, etags) {
  const next = /** @type {Map<string, Entity>} */ (world);
  let at = 0;
  for (const { method, change } of parts) change(next, method === 'DELETE' ? undefined : etags[at++]);
  return next;
}

/** @param {Part[]} parts */
function batchOf(parts) {
  let set = '';
  for (const { method, path, headers, body } of parts) {
    const all = Object.entries({ ...JSON_HEADERS, prefer: 'return-no-content', ...headers });
    const head = all.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    set += `--set\r\ncontent-type: application/http\r\n\r\n${method} ${path} HTTP/1.1\r\n${head}\r\n${body}\r\n`;
  }
  const body = Buffer.from(`--b\r\ncontent-type: multipart/mixed; boundary=set\r\n\r\n${set}--set--\r\n--b--\r\n`);
  return { headers: { ...JSON_HEADERS, 'content-type': 'multipart/mixed; boundary=b' }, body };
}

/** @param {string} table @param {string} key */
const pathOf = (table, key) => `/${table}(PartitionKey='${PARTITION}',RowKey='${key}')`;
/** @param {string} mark @param {number} length */
const bodyOf = (mark, length) => ({ serial: mark, padding: 'x'.repeat(length) });

/** @param {string} table @param {string} key @param {string} mark @param {number} length @returns {Part} */
function insert(table, key, mark, length) {
  const body = JSON.stringify({ PartitionKey: PARTITION, RowKey: key, ...bodyOf(mark, length) });
  return { ...replace(table, key, mark, length), method: 'POST', path: `/${table}`, body };
}

/** @param {string} table @param {string} key @param {string} mark @param {number} length @returns {Part} */
function replace(table, key, mark, length) {
  return {
    ...{ method: 'PUT', path: pathOf(table, key), headers: {}, body: JSON.stringify(bodyOf(mark, length)) },
    change: (next, etag) => next.set(key, { serial: mark, merged: undefined, length, etag }),
  };
}

/** @param {string} table @param {string} key @param {string} mark @param {number} _ @param {Entity} entity @returns {Part} */
function merge(table, key, mark, _, entity) {
  return {
    ...{ method: 'PATCH', path: pathOf(table, key), headers: {}, body: JSON.stringify({ merged: mark }) },
    change: (next, etag) => next.set(key, { ...entity, merged: mark, etag }),
  };
}

/** @param {string} table @param {string} key @param {string} mark @param {number} length @param {Entity} entity @returns {Part} */
function mergeIfMatch(table, key, mark, length, entity) {
  return { ...merge(table, key, mark, length, entity), headers: { 'if-match': entity.etag ?? '*' } };
}

/** @param {string} table @param {string} key @returns {Part} */
function remove(table, key) {
  return {
    ...{ method: 'DELETE', path: pathOf(table, key), headers: { 'if-match': '*' }, body: '' },
    change: (next) => next.delete(key),
  };
}

/** @param {Client} client @param {string} table @returns {Promise<World>} */
async function observe(client, table) {
  const accept = 'application/json;odata=fullmetadata';
  const { status, headers, body } = await client.send('GET', `/${table}()`, { headers: { accept } });
  if (status === 404) return undefined;
  if (status !== 200 || headers['x-ms-continuation-nextpartitionkey'])
    throw new Error(`the query of ${table} was answered ${status}`);
  /** @type {Map<string, Entity>} */
  const world = new Map();
  for (const { RowKey, serial, merged, padding, 'odata.etag': etag } of JSON.parse(body.toString()).value)
    world.set(RowKey, { serial, merged, length: padding.length, etag });
  return world;
}

/**
 * An expected entity without an ETag may have any that was never seen.
 * @param {string} table @param {World} expected @param {World} found @param {ReadonlySet<string>} seen
 */
function differences(table, expected, found, seen) {
  if (!expected || !found) return expected === found ? [] : [`${table} is ${found ? 'there again' : 'lost'}`];
  const faults = [];
  for (const key of new Set([...expected.keys(), ...found.keys()])) {
    const [one, other] = [expected.get(key), found.get(key)];
    if (!one || !other) {
      faults.push(`${table} ${key} is ${other ? 'there again' : 'lost'}`);
      continue;
    }
    const [wanted, is] = [one, other].map(({ serial, merged, length }) => `${serial}, ${merged}, ${length}`);
    if (wanted !== is) faults.push(`${table} ${key} is (${is}), not (${wanted})`);
    if (one.etag ? one.etag !== other.etag : seen.has(other.etag ?? ''))
      faults.push(`${table} ${key} has the ETag ${other.etag}, not ${one.etag ?? 'a new one'}`);
  }
  return faults;
}
