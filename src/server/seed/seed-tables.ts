/** Tables of a seed, with their entities. */
import { readEntity } from '../../rest/table/json/read-entity.ts';
import { changeEntity } from '../../services/table/entities.ts';
import { checkEntity } from '../../services/table/request-checks.ts';
import { createTable } from '../../services/table/tables.ts';
import { checkedName } from './seed-checks.ts';
import type { SeedNode } from './seed-node.ts';
import { type SeedScope, withPlace } from './seed-step.ts';

const TYPE = '@odata.type';
const KEYS = ['PartitionKey', 'RowKey'];

export async function addTable(node: SeedNode, { account, steps }: SeedScope): Promise<void> {
  const { entities } = node.fields(['entities']);
  const table = checkedName(node, 'table');
  steps.parents.push({
    node,
    account,
    existsCode: 'TableAlreadyExists',
    run: (storage) => createTable(storage, { table }),
  });
  const seen = new Set<string>();
  for (const item of entities?.items() ?? []) {
    const entity = await parseEntity(item);
    const key = JSON.stringify([entity.partitionKey, entity.rowKey]);
    if (seen.has(key)) throw item.fault('an entity with the same PartitionKey and RowKey is there already');
    seen.add(key);
    steps.children.push({
      node: item,
      account,
      existsCode: 'EntityAlreadyExists',
      run: (storage) => changeEntity(storage, table, { kind: 'insert', entity }),
    });
  }
}

/** An entity is what a client sends as JSON: the type of a value follows from its form, or from `name@odata.type`. */
async function parseEntity(node: SeedNode) {
  const properties = node.entries();
  for (const name of KEYS) {
    const key = properties.find((property) => property.name === name);
    if (!key) throw node.fault(`an entity has a ${name}`);
    key.text();
  }
  try {
    return await judge(properties);
  } catch (error) {
    await findProperty(properties);
    throw withPlace(node, error);
  }
}

/** As a client's entity is judged. A key that is not among them is empty. */
async function judge(properties: readonly SeedNode[]) {
  const { partitionKey = '', rowKey = '', ...read } = await readEntity(jsonOf(properties));
  return checkEntity({ ...read, partitionKey, rowKey });
}

/** Throws the fault of the first property that is refused alone. */
async function findProperty(properties: readonly SeedNode[]): Promise<void> {
  for (const property of properties.filter(({ name }) => !name.endsWith(TYPE))) {
    const type = properties.find(({ name }) => name === property.name + TYPE);
    try {
      await judge(type ? [property, type] : [property]);
    } catch (error) {
      if (type && (await isValidAlone(property))) throw property.fault(`it is not a value of ${type.value}`);
      throw withPlace(property, error);
    }
  }
}

function isValidAlone(property: SeedNode): Promise<boolean> {
  return judge([property]).then(
    () => true,
    () => false,
  );
}

function jsonOf(properties: readonly SeedNode[]): Buffer {
  const members = properties.map((property) => `${JSON.stringify(property.name)}:${valueJson(property)}`);
  return Buffer.from(`{${members.join(',')}}`);
}

/** Whole numbers are bigint: 2 is an Int32, and 2.0 a Double. */
function valueJson(property: SeedNode): string {
  const { value } = property;
  switch (typeof value) {
    case 'bigint':
      return String(value);
    case 'number':
      if (Number.isFinite(value)) return Number.isInteger(value) ? `${value.toFixed(1)}` : String(value);
      break;
    case 'string':
    case 'boolean':
      return JSON.stringify(value);
    default:
      if (value === null) return 'null';
  }
  throw property.fault('a property is a text, a finite number, true or false');
}
