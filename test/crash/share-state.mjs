/** Expected and actual state of a share and its snapshots, and the difference. */

/**
 * @typedef {Map<string, Buffer | undefined>} Tree by path: the bytes of a file, undefined of a directory
 * @typedef {{ second: string | undefined, tree: Tree }} Taken a snapshot; `second` is unknown if it was never answered
 * @typedef {{ tree: Tree, snapshots: readonly Taken[] } | undefined} World of one share; undefined: it does not exist
 * @typedef {ReturnType<import('../support/signed-client.mjs').connect>} Client
 */

/** @param {Client} client @param {string} share @returns {Promise<World>} */
export async function observeShare(client, share) {
  const tree = await observeTree(client, share, '');
  if (!tree) return undefined;
  const { body } = await client.send('GET', `/?comp=list&include=snapshots&prefix=${share}`);
  /** @type {Taken[]} */
  const snapshots = [];
  for (const [, second = ''] of body.toString().matchAll(/<Snapshot>(.*?)<\/Snapshot>/g))
    snapshots.push({ second, tree: (await observeTree(client, share, `&sharesnapshot=${second}`)) ?? new Map() });
  return { tree, snapshots };
}

/** @param {Client} client @param {string} share @param {string} at the rest of a query @returns {Promise<Tree | undefined>} */
async function observeTree(client, share, at) {
  /** @type {Tree} */
  const found = new Map();
  const directories = [''];
  for (let path = directories.pop(); path !== undefined; path = directories.pop()) {
    const target = `/${share}${path && `/${path}`}?restype=directory&comp=list${at}`;
    const { status, body } = await client.send('GET', target);
    if (status === 404 && path === '') return undefined;
    if (status !== 200) found.set(`${path}: its list was answered ${status}`, undefined);
    for (const [, kind, name] of body.toString().matchAll(/<(File|Directory)><Name>(.*?)<\/Name>/g)) {
      const below = `${path}${path && '/'}${name}`;
      if (kind === 'Directory') {
        found.set(below, undefined);
        directories.push(below);
        continue;
      }
      const file = await client.send('GET', `/${share}/${below}${at.replace('&', '?')}`);
      found.set(below, file.status === 200 ? file.body : Buffer.from(`answered ${file.status}`));
    }
  }
  return found;
}

/** @param {World} expected @param {World} found @returns {string[]} */
export function differences(expected, found) {
  if (!expected || !found) return expected === found ? [] : [expected ? 'it is gone' : 'it is there'];
  const names = (/** @type {readonly Taken[]} */ snapshots) => snapshots.map(({ second }) => second).join(', ');
  const faults = treeDifferences(expected.tree, found.tree);
  if (expected.snapshots.length !== found.snapshots.length)
    return [...faults, `it has the snapshots ${names(found.snapshots)}, not ${names(expected.snapshots)}`];
  for (const [i, { second, tree }] of expected.snapshots.entries()) {
    const other = /** @type {Taken} */ (found.snapshots[i]);
    if (second && second !== other.second) faults.push(`snapshot ${i} is ${other.second}, not ${second}`);
    faults.push(...treeDifferences(tree, other.tree).map((fault) => `in its snapshot ${other.second}, ${fault}`));
  }
  return faults;
}

/** @param {Tree} expected @param {Tree} found @returns {string[]} */
function treeDifferences(expected, found) {
  const paths = new Set([...expected.keys(), ...found.keys()]);
  return [...paths].flatMap((path) => {
    if (!expected.has(path)) return [`${path} is there`];
    if (!found.has(path)) return [`${path} is gone`];
    const [one, other] = [expected.get(path), found.get(path)];
    if (!one || !other) return one === other ? [] : [`${path} is of another kind`];
    return one.equals(other) ? [] : [`${path} has other bytes`];
  });
}
