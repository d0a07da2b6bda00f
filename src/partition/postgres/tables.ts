/** The server's tables, as SQL. `S.` stands for the schema of the store. */

/** The indexed part of a key: an index entry has at most 2,704 bytes. */
export const sortPrefix = (key: string): string => `substring(${key} from 1 for 2500)`;

export const TABLES = `
create table S.rows (key bytea not null, value bytea not null, version bigint not null)
  with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);
alter table S.rows alter column value set storage external;
create unique index rows_key on S.rows (sha256(key));
create index rows_order on S.rows (${sortPrefix('key')});

create table S.gone (hash bytea primary key, version bigint not null);
create index gone_version on S.gone (version);
comment on table S.gone is 'Versions that were removed within the last minutes: none is given to that key again.';

create table S.commits (id text collate "C" primary key, committed boolean not null, at bigint not null);
create index commits_at on S.commits (at);
comment on table S.commits is 'Commits of the last minutes, and ids that were asked for and barred: they never happen.';

create table S.clock (one boolean primary key default true check (one), shift bigint not null, floor bigint not null);
insert into S.clock (shift, floor) values (0, 0);
comment on table S.clock is 'How far the time of the store is ahead of the clock of this server, and what it never falls behind.';
`;

/**
 * UNLOGGED: not in the server's log, so writing them waits for no flush, and empty after a crash or a failover. The ids of commits that
 * wrote nothing else are lost together with what the commits wrote.
 */
export const VOLATILE_TABLES = `
create unlogged table if not exists S.volatile_rows (key bytea not null, value bytea not null, version bigint not null)
  with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);
create unique index if not exists volatile_rows_key on S.volatile_rows (sha256(key));
create index if not exists volatile_rows_order on S.volatile_rows (${sortPrefix('key')});
create unlogged table if not exists S.volatile_gone (hash bytea primary key, version bigint not null);
create index if not exists volatile_gone_version on S.volatile_gone (version);
create unlogged table if not exists S.volatile_commits (id text collate "C" primary key, committed boolean not null, at bigint not null);
create index if not exists volatile_commits_at on S.volatile_commits (at);
`;

/** Logged and volatile rows are in tables of the same form; the first byte of a key tells which. */
export interface RowKind {
  readonly prefix: '' | 'volatile_';
  readonly rows: string;
  readonly gone: string;
  readonly commits: string;
  /** Whether a key is of this kind. */
  has(key: string): string;
}

export const LOGGED: RowKind = {
  ...{ prefix: '', rows: 'S.rows', gone: 'S.gone', commits: 'S.commits' },
  has: (key) => `${key} < '\\x04'::bytea`,
};
export const VOLATILE: RowKind = {
  ...{ prefix: 'volatile_', rows: 'S.volatile_rows', gone: 'S.volatile_gone', commits: 'S.volatile_commits' },
  has: (key) => `${key} >= '\\x04'::bytea`,
};
export const KINDS = [LOGGED, VOLATILE] as const;
