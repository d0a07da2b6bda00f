/** The store's time in the server, as SQL. `S.` stands for the schema of the store. */

const DEADLINE_TICKS = 1000;
const HOUR_TICKS = 36_000_000_000n;

const CLOCK = `
create or replace function S.store_now() returns bigint language sql volatile as $$
  select greatest(floor, 621355968000000000 + (extract(epoch from clock_timestamp()) * 10000000)::bigint + shift) from S.clock
$$;

-- If the server's clock was set back, or the server replaced, time continues from the last instant that was returned.
create or replace function S.beat(p_now bigint, p_moved bigint) returns bigint language sql volatile as $$
  update S.clock k set
    floor = greatest(k.floor, x.t + k.shift, p_now) + p_moved,
    shift = greatest(k.shift, k.floor - x.t, p_now - x.t) + p_moved
  from (select 621355968000000000 + (extract(epoch from clock_timestamp()) * 10000000)::bigint as t) x
  where p_moved > 0 or k.floor > x.t + k.shift or x.t + k.shift > k.floor + 5000000 or p_now > x.t + k.shift + 1000000;
  select S.store_now()
$$;
`;

/**
 * A commit with a deadline is decided some milliseconds before it is visible. Meanwhile the commit holds two advisory locks, shared:
 * one that all such commits hold, and one whose number is the deadline. PostgreSQL releases locks after the commit is visible, so a
 * reader that finds a lock free sees the commit in its next snapshot.
 */
const DEADLINES = `
create or replace function S.deadline_number(p_deadline bigint) returns int language sql immutable as $$
  select (p_deadline / ${DEADLINE_TICKS})::bit(32)::int
$$;

-- The deadline rounded to a lock number: 32 bits count 119 hours. No commit runs for an hour.
create or replace function S.announce_deadline(p_before bigint) returns bigint language plpgsql volatile as $$
begin
  p_before := p_before - p_before % ${DEADLINE_TICKS};
  if p_before < S.store_now() + ${HOUR_TICKS} then
    perform pg_advisory_xact_lock_shared(hashtextextended('S. deadlines', 0));
    perform pg_advisory_xact_lock_shared(hashtext('S. deadline'), S.deadline_number(p_before));
  end if;
  return p_before;
end
$$;

-- For a snapshot that is taken after this: every commit that it does not show has a deadline later than this instant.
-- A reader waits for commits whose deadline has passed. If one of them hangs, the time of readers stays before its deadline.
create or replace function S.now_for_reads(p_told bigint) returns bigint language plpgsql volatile as $$
declare
  now bigint := greatest(S.store_now(), p_told);
  deadline bigint;
begin
  if pg_try_advisory_xact_lock(hashtextextended('S. deadlines', 0)) then return now; end if;
  for deadline in
    select distinct (now / ${DEADLINE_TICKS} - age) * ${DEADLINE_TICKS} from (
      select (now / ${DEADLINE_TICKS} - objid::bigint)::bit(32)::int as age from pg_locks
      where locktype = 'advisory' and objsubid = 2 and classid::bigint = hashtext('S. deadline')::bigint & 4294967295
        and mode = 'ShareLock' and granted and database = (select oid from pg_database where datname = current_database())
    ) announced where age >= 0 order by 1
  loop
    begin
      perform set_config('lock_timeout', '3s', true);
      perform pg_advisory_xact_lock(hashtext('S. deadline'), S.deadline_number(deadline));
    exception when lock_not_available then
      if deadline <= p_told then raise; end if;
      return deadline - 1;
    end;
  end loop;
  return now;
end
$$;
`;

export const TIME_FUNCTIONS = CLOCK + DEADLINES;
