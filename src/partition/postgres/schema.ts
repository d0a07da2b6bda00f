/** Schema migrations. */
import type { ClientBase } from 'pg';
import { CannotOpen } from './errors.ts';
import { FUNCTIONS } from './functions.ts';
import { TABLES, VOLATILE_TABLES } from './tables.ts';

/** Rises with every change of a table or of a function's arguments or meaning, and of rows that older versions cannot read. */
export const SCHEMA_VERSION = 6;
/**
 * From each version to the next; the functions are replaced in any case. The commit function of version 4, which has other arguments, stays
 * for the processes that call it.
 */
const MIGRATIONS: readonly string[] = [TABLES, '', '', 'drop function if exists S.commit;', VOLATILE_TABLES, ''];
const SERVER_VERSION_MIN = 15;

const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Replaces `S.` by the schema's name. */
export function inSchema(schema: string, sql: string): string {
  return sql.replaceAll(/\bS\./g, () => `${quoteIdentifier(schema)}.`);
}

/** Creates the schema, or migrates it to this version: one process does, the others wait. */
export async function prepareSchema(client: ClientBase, schema: string): Promise<void> {
  await checkServer(client);
  if ((await readSchemaVersion(client, schema)) === SCHEMA_VERSION) return;
  await client.query('begin');
  try {
    await client.query(`select pg_advisory_xact_lock(hashtextextended($1, 0))`, [`holdfast schema ${schema}`]);
    const version = await readSchemaVersion(client, schema);
    const { rows } = await client.query('select from pg_namespace where nspname = $1', [schema]);
    if (rows.length === 0) await client.query(`create schema ${quoteIdentifier(schema)}`);
    if (version < SCHEMA_VERSION) await client.query(inSchema(schema, migration(version)));
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  }
}

function migration(version: number): string {
  const begin = version === 0 ? 'create table S.version (number int not null);' : '';
  const steps = MIGRATIONS.slice(version).join('\n');
  const end = `delete from S.version; insert into S.version values (${SCHEMA_VERSION});`;
  return [begin, steps, FUNCTIONS, end].join('\n');
}

async function readSchemaVersion(client: ClientBase, schema: string): Promise<number> {
  // Not to_regclass: a connection caches that there was none.
  const { rowCount } = await client.query(
    `select from pg_class join pg_namespace n on n.oid = relnamespace where relname = 'version' and nspname = $1`,
    [schema],
  );
  if (rowCount === 0) return 0;
  const { rows } = await client.query(inSchema(schema, 'select number from S.version'));
  const version = Number(rows[0]?.number ?? 0);
  if (version > SCHEMA_VERSION) {
    throw new CannotOpen(
      `The store in schema ${schema} has version ${version}; this Holdfast knows ${SCHEMA_VERSION}: start a newer one.`,
    );
  }
  return version;
}

async function checkServer(client: ClientBase): Promise<void> {
  const { rows } = await client.query(
    `select current_setting('server_version') as version, current_setting('server_version_num')::int / 10000 as major,
      pg_is_in_recovery() as standby, current_setting('transaction_read_only') = 'on' as readonly`,
  );
  const { version, major, standby, readonly } = rows[0];
  if (major < SERVER_VERSION_MIN) {
    throw new CannotOpen(`PostgreSQL ${version} is too old: Holdfast needs ${SERVER_VERSION_MIN} or later.`);
  }
  if (standby || readonly) throw new CannotOpen('PostgreSQL is a read-only standby there: Holdfast needs the primary.');
}
