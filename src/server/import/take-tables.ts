/** Tables and entities of Azurite. Each table has a collection of its own, named account$table. */
import { readEntity } from '../../rest/table/json/read-entity.ts';
import { parseGuid } from '../../rules/table/edm.ts';
import { changeEntities, type Insert } from '../../services/table/entities.ts';
import { createTable, setTableAcl } from '../../services/table/tables.ts';
import { attempt, groupBy, together } from './attempts.ts';
import { mapOf, policiesOf, textOf } from './azurite-documents.ts';
import type { ImportedDocument, ImportTarget } from './import-kinds.ts';
import type { LokiDocument } from './loki-file.ts';

export function isEntityCollection(collection: string): boolean {
  return collection.indexOf('$') > 0;
}

export async function takeTables(documents: readonly ImportedDocument[], target: ImportTarget): Promise<void> {
  for (const { document } of documents) {
    const table = String(document.table);
    await attempt(table, target, async () => {
      const storage = target.storage(textOf(document, 'account'));
      await createTable(storage, { table });
      const policies = policiesOf(document.tableAcl, 'table');
      if (policies.length > 0) await setTableAcl(storage, { table, policies });
    });
  }
}

/** Those of one partition are one commit. */
export async function takeEntities(documents: readonly ImportedDocument[], target: ImportTarget): Promise<void> {
  const found: FoundEntity[] = [];
  for (const { collection, document } of documents) {
    const [account, table] = splitCollection(collection);
    const name = `${table}(${document.PartitionKey},${document.RowKey})`;
    await attempt(name, target, async () => {
      const entity = await readEntity(Buffer.from(JSON.stringify(propertiesOf(document))));
      found.push({ name, account, table, change: { kind: 'insert', entity } });
    });
  }
  for (const group of groupBy(found, ({ account, table, change }) =>
    JSON.stringify([account, table, change.entity.partitionKey]),
  )) {
    const { account, table } = group[0]!;
    await together(group, target, (entities) =>
      changeEntities(
        target.storage(account),
        table,
        entities.map(({ change }) => change),
      ),
    );
  }
}

interface FoundEntity {
  readonly name: string;
  readonly account: string;
  readonly table: string;
  readonly change: Insert;
}

function splitCollection(collection: string): [account: string, table: string] {
  const at = collection.indexOf('$');
  return [collection.slice(0, at), collection.slice(at + 1)];
}

/** As a client sends them. Azurite stores a GUID as the Base64 of its text. */
function propertiesOf(document: LokiDocument): LokiDocument {
  const { PartitionKey, RowKey } = document;
  const properties = mapOf(document.properties);
  const converted = Object.entries(properties).map(([name, value]) => {
    const isGuid = properties[`${name}@odata.type`] === 'Edm.Guid' && typeof value === 'string';
    return [name, isGuid && parseGuid(value) === undefined ? Buffer.from(value, 'base64').toString() : value];
  });
  return { ...Object.fromEntries(converted), PartitionKey, RowKey };
}
