/** The server's functions, as SQL: OCC validation and commit run in S.commit. `S.` stands for the schema of the store. */
import { KINDS, LOGGED, type RowKind, sortPrefix, VOLATILE } from './tables.ts';
import { TIME_FUNCTIONS } from './time-functions.ts';

/** Rows of a table that one call deletes at most; the result tells whether there may be more. */
export const CLEANUP_ROWS_MAX = 10_000;

/** The rows before an instant, oldest first. */
const deleteBefore = (table: string, column: string): string => `
  delete from ${table} where ctid = any (array(
    select ctid from ${table} where ${column} < p_until order by ${column} limit ${CLEANUP_ROWS_MAX}));
  get diagnostics deleted = row_count;
  most := greatest(most, deleted);`;

const CLEANUP = `
create or replace function S.forget(p_until bigint) returns bigint language plpgsql as $$
declare
  deleted bigint;
  most bigint := 0;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('S. forget', 0)) then return 0; end if;
  ${KINDS.map(({ commits, gone }) => deleteBefore(commits, 'at') + deleteBefore(gone, 'version')).join('')}
  return most;
end
$$;
`;

/** Seconds in ticks. */
const ticks = (count: number): string => `${count}0000000`;
/** A timestamp older than this is a conflict; removed versions and commit ids are kept for longer, so none is used again. */
const STAMP_SECONDS = 60;
const RESOLVE_SECONDS = 300;
export const RETENTION_SECONDS = 900;

const ADDED = `
create or replace function S.added(value bytea, n bigint) returns bytea language sql immutable as $$
  select int8send((mod(('x' || encode(value, 'hex'))::bit(64)::bigint::numeric + n + 27670116110564327424, 18446744073709551616)
    - 9223372036854775808)::bigint)
$$;
`;

const hasChanged = ({ rows, has }: RowKind): string => `exists (
    select from unnest(p_check_keys, p_check_versions) as c(key, version)
    left join ${rows} r on sha256(r.key) = sha256(c.key)
    where ${has('c.key')} and r.version is distinct from c.version
  )`;

const findRange = ({ rows }: RowKind): string => `
      select coalesce(array_agg(r.key), '{}'), coalesce(array_agg(r.version), '{}') into found_keys, found_versions from (
        select key, version from ${rows}
        where ${sortPrefix('key')} >= ${sortPrefix('p_froms[i]')} and ${sortPrefix('key')} <= ${sortPrefix('p_tos[i]')}
          and key >= p_froms[i] and key < p_tos[i]
        order by ${sortPrefix('key')}, key limit p_counts[i] + 1
      ) r;`;

/** Returns if a write cannot be made. */
const validateWrites = ({ rows, gone, has }: RowKind): string => `
  if cardinality(p_keys) > 0 then
    select max(greatest(r.version, g.version)) into in_the_way
    from unnest(p_keys, p_least) as w(key, least)
    left join ${rows} r on sha256(r.key) = sha256(w.key)
    left join ${gone} g on g.hash = sha256(w.key)
    where ${has('w.key')} and (r.version >= w.least or g.version >= w.least);
    if in_the_way is not null then return; end if;
  end if;
  if cardinality(p_add_keys) + cardinality(p_max_keys) > 0 then
    select octet_length(r.value) into in_the_way
    from unnest(p_add_keys || p_max_keys) as w(key) join ${rows} r on sha256(r.key) = sha256(w.key)
    where ${has('w.key')} and octet_length(r.value) <> 8 limit 1;
    if in_the_way is not null then
      outcome := 'mistake';
      return;
    end if;
  end if;`;

const applyWrites = ({ rows, gone, has }: RowKind): string => `
  if cardinality(p_keys) > 0 then
    insert into ${rows} (key, value, version)
    select w.key, w.value, w.stamp from unnest(p_keys, p_values, p_stamps) as w(key, value, stamp)
    where ${has('w.key')} and w.value is not null
    on conflict (sha256(key)) do update set value = excluded.value, version = excluded.version;
    if array_position(p_values, null) is not null then
      delete from ${rows} r using unnest(p_keys, p_values) as w(key, value)
      where ${has('w.key')} and w.value is null and sha256(r.key) = sha256(w.key);
      insert into ${gone} as g (hash, version)
      select sha256(w.key), w.stamp from unnest(p_keys, p_values, p_stamps) as w(key, value, stamp)
      where ${has('w.key')} and w.value is null
      on conflict (hash) do update set version = greatest(g.version, excluded.version);
    end if;
  end if;
  if cardinality(p_add_keys) > 0 then
    insert into ${rows} as r (key, value, version)
    select w.key, int8send(w.n), w.stamp from unnest(p_add_keys, p_added, p_add_stamps) as w(key, n, stamp) where ${has('w.key')}
    on conflict (sha256(key)) do update set
      value = S.added(r.value, ('x' || encode(excluded.value, 'hex'))::bit(64)::bigint),
      version = greatest(excluded.version, r.version + 1);
    delete from ${rows} r using unnest(p_add_keys) as w(key)
    where ${has('w.key')} and sha256(r.key) = sha256(w.key) and r.value = int8send(0);
  end if;
  if cardinality(p_max_keys) > 0 then
    -- Numbers above zero: their bytes have the same order.
    insert into ${rows} as r (key, value, version)
    select w.key, int8send(w.n), w.stamp from unnest(p_max_keys, p_maxima, p_max_stamps) as w(key, n, stamp) where ${has('w.key')}
    on conflict (sha256(key)) do update set value = excluded.value, version = greatest(excluded.version, r.version + 1)
    where r.value < excluded.value;
  end if;`;

const COMMIT = `
-- p_logged: there are writes of logged rows, or none at all. p_volatile: there are reads or writes of volatile rows.
create or replace function S.commit(
  p_id text, p_logged boolean, p_volatile boolean, p_now bigint, p_before bigint,
  p_anchors bigint[], p_locks bigint[], p_alone boolean[],
  p_check_keys bytea[], p_check_versions bigint[],
  p_froms bytea[], p_tos bytea[], p_counts bigint[], p_seen_keys bytea[], p_seen_versions bigint[],
  p_keys bytea[], p_values bytea[], p_stamps bigint[], p_least bigint[],
  p_add_keys bytea[], p_added bigint[], p_add_stamps bigint[],
  p_max_keys bytea[], p_maxima bigint[], p_max_stamps bigint[],
  out outcome text, out at bigint, out in_the_way bigint
) language plpgsql volatile as $$
declare
  number bigint;
  seen int := 0;
  found_keys bytea[];
  found_versions bigint[];
begin
  -- Waits for the holder of an exclusive lock on the queue key, but not for long: that process may have been paused.
  foreach number in array p_anchors loop
    if pg_try_advisory_xact_lock_shared(number) then continue; end if;
    perform set_config('lock_timeout', '2s', true);
    begin
      perform pg_advisory_xact_lock_shared(number);
    exception when lock_not_available then null;
    end;
    perform set_config('lock_timeout', '10s', true);
  end loop;
  for i in 1 .. cardinality(p_locks) loop
    if p_alone[i] then perform pg_advisory_xact_lock(p_locks[i]);
    else perform pg_advisory_xact_lock_shared(p_locks[i]); end if;
  end loop;

  -- From here on every statement sees all commits that held these locks before.
  outcome := 'conflict';
  if p_before is not null then p_before := S.announce_deadline(p_before); end if;
  at := greatest(S.store_now(), p_now);
  if at >= p_before then return; end if;
  if exists (select from unnest(p_least) as stamp where stamp < at - ${ticks(STAMP_SECONDS)}) then return; end if;

  if cardinality(p_check_keys) > 0 and ${hasChanged(LOGGED)} then return; end if;
  if p_volatile and cardinality(p_check_keys) > 0 and ${hasChanged(VOLATILE)} then return; end if;
  for i in 1 .. cardinality(p_froms) loop
    if ${LOGGED.has('p_froms[i]')} then ${findRange(LOGGED)}
    else ${findRange(VOLATILE)}
    end if;
    if found_keys <> p_seen_keys[seen + 1 : seen + p_counts[i]]
      or found_versions <> p_seen_versions[seen + 1 : seen + p_counts[i]] then return; end if;
    seen := seen + p_counts[i];
  end loop;

  if p_logged then ${validateWrites(LOGGED)}
  end if;
  if p_volatile then ${validateWrites(VOLATILE)} ${applyWrites(VOLATILE)}
  end if;
  if p_logged then ${applyWrites(LOGGED)}
    insert into S.commits (id, committed, at) values (p_id, true, commit.at);
  else
    -- All that it read is durable: a commit is visible only after its flush, but for those that are lost with this one.
    perform set_config('synchronous_commit', 'off', true);
    insert into S.volatile_commits (id, committed, at) values (p_id, true, commit.at);
  end if;
  outcome := 'committed';
end
$$;
`;

const resolveFunction = ({ prefix, commits }: RowKind): string => `
-- Waits for a commit that is running, and bars one that has not started. The update waits for the standby, too.
create or replace function S.${prefix}resolve(p_id text, p_sent bigint) returns text language plpgsql volatile as $$
declare
  happened boolean;
begin
  if p_sent < S.store_now() - ${ticks(RESOLVE_SECONDS)} then return 'unknown'; end if;
  insert into ${commits} as c (id, committed, at) values (p_id, false, S.store_now())
  on conflict (id) do update set committed = c.committed returning c.committed into happened;
  return case when happened then 'committed' else 'conflict' end;
end
$$;
`;

/** Rows of a group that are skipped one by one before a seek, which costs about as much. */
const SKIPPED_MAX = 24;
const SCAN_BATCH_ROWS = 200;

const PAST_ANY = `
-- After every key that starts with these bytes; null: there is no such key.
create or replace function S.past_any(bytes bytea) returns bytea language plpgsql immutable strict as $$
begin
  while octet_length(bytes) > 0 and get_byte(bytes, octet_length(bytes) - 1) = 255 loop
    bytes := substring(bytes from 1 for octet_length(bytes) - 1);
  end loop;
  if octet_length(bytes) = 0 then return null; end if;
  return set_byte(bytes, octet_length(bytes) - 1, get_byte(bytes, octet_length(bytes) - 1) + 1);
end
$$;
`;

const pageFunction = ({ prefix, rows }: RowKind): string => `
-- Of rows whose keys are equal up to the end of the first mark after p_behind bytes, only the first.
create or replace function S.${prefix}page(p_from bytea, p_to bytea, p_limit bigint, p_bytes bigint, p_behind int, p_mark bytea)
returns table (key bytea, version bigint, value bytea) language plpgsql stable as $$
#variable_conflict use_column
declare
  start bytea := p_from;
  common bytea;
  looked int;
  skipped int;
  place int;
begin
  loop
    looked := 0;
    skipped := 0;
    for key, version, value in
      select r.key, r.version, r.value from ${rows} r
      where ${sortPrefix('r.key')} >= ${sortPrefix('start')} and ${sortPrefix('r.key')} <= ${sortPrefix('p_to')}
        and r.key >= start and r.key < p_to
      order by ${sortPrefix('r.key')}, r.key limit ${SCAN_BATCH_ROWS}
    loop
      looked := looked + 1;
      if common is not null and substring(key from 1 for octet_length(common)) = common then
        skipped := skipped + 1;
        exit when skipped >= ${SKIPPED_MAX};
        continue;
      end if;
      return next;
      p_limit := p_limit - 1;
      p_bytes := p_bytes - octet_length(value);
      if p_limit <= 0 or p_bytes <= 0 then return; end if;
      place := position(p_mark in substring(key from p_behind + 1));
      common := case when place > 0 then substring(key from 1 for p_behind + place - 1 + octet_length(p_mark)) end;
      skipped := 0;
    end loop;
    if looked < ${SCAN_BATCH_ROWS} and skipped < ${SKIPPED_MAX} then return; end if;
    start := case when common is null then key || '\\x00'::bytea else S.past_any(common) end;
    if start is null or start >= p_to then return; end if;
  end loop;
end
$$;
`;

const perKind = (sql: (kind: RowKind) => string): string => KINDS.map(sql).join('');

export const FUNCTIONS =
  TIME_FUNCTIONS + CLEANUP + ADDED + COMMIT + perKind(resolveFunction) + PAST_ANY + perKind(pageFunction);

const scanQuery = ({ rows }: RowKind, direction: string): string => `
  select key, version, value from (
    select key, version, value, sum(octet_length(value)) over (rows unbounded preceding) - octet_length(value) as before from (
      select key, version, value from ${rows}
      where ${sortPrefix('key')} >= ${sortPrefix('$1')} and ${sortPrefix('key')} <= ${sortPrefix('$2')} and key >= $1 and key < $2
      order by ${sortPrefix('key')} ${direction}, key ${direction} limit $3
    ) page
  ) counted where before < $4`;

const prepareReads = (kind: RowKind): string => `
prepare holdfast_${kind.prefix}get(bytea[]) as
  select k.n, r.version, r.value from unnest($1) with ordinality as k(key, n) join ${kind.rows} r on sha256(r.key) = sha256(k.key);
prepare holdfast_${kind.prefix}scan(bytea, bytea, bigint, bigint) as ${scanQuery(kind, 'asc')};
prepare holdfast_${kind.prefix}scan_back(bytea, bytea, bigint, bigint) as ${scanQuery(kind, 'desc')};
prepare holdfast_${kind.prefix}page(bytea, bytea, bigint, bigint, int, bytea) as
  select key, version, value from S.${kind.prefix}page($1, $2, $3, $4, $5, $6);
`;

/** Prepared on every connection for reads; one round trip executes all that are pending. */
export const PREPARED_READS = `
prepare holdfast_now(bigint) as select S.now_for_reads($1);
${perKind(prepareReads)}`;
