-- name: figures
-- What monitoring reads, again and again: of each table so many rows at most, by an index.
WITH records AS (
    SELECT run, place, xid, first, last FROM unsealed
    WHERE xid >= least((SELECT horizon FROM seal WHERE id = 1),
                       pg_snapshot_xmax(pg_current_snapshot()))
    ORDER BY xid LIMIT $1
), oldest AS (
    SELECT events.at FROM records JOIN events ON events.run = records.run AND seq = first
    ORDER BY records.xid, records.place LIMIT 1
), waiting AS (
    SELECT scheduled_at FROM procrastinate_jobs
    WHERE queue_name = 'drive' AND status = 'todo' ORDER BY priority DESC, id LIMIT $1
), driven AS (
    SELECT last_heartbeat FROM procrastinate_jobs AS jobs
    LEFT JOIN procrastinate_workers AS workers ON workers.id = jobs.worker_id
    WHERE queue_name = 'drive' AND jobs.status = 'doing' LIMIT $1
)
SELECT (SELECT coalesce(sum(last - first + 1), 0)::bigint FROM records),
       greatest(extract(epoch FROM clock_timestamp()) - least(
           (SELECT at FROM oldest), (SELECT min(at) FROM (SELECT at FROM deeds LIMIT $1) AS newest)
       ), 0)::float8,
       (SELECT count(*) FROM waiting WHERE scheduled_at IS NULL OR scheduled_at <= now()),
       (SELECT count(*) FROM waiting WHERE scheduled_at > now()),
       coalesce((SELECT extract(epoch FROM clock_timestamp() - min(scheduled_at)) FROM waiting
                 WHERE scheduled_at <= now()), 0)::float8,
       (SELECT count(*) FROM driven),
       (SELECT count(*) FROM driven WHERE last_heartbeat IS NULL
           OR last_heartbeat < now() - make_interval(secs => $2)),
       (SELECT count(*) FROM procrastinate_workers
        WHERE last_heartbeat >= now() - make_interval(secs => $2)),
       (SELECT count(*) FROM slots),
       (SELECT count(*) FROM slots JOIN procrastinate_workers AS workers
        ON workers.id = slots.worker AND last_heartbeat >= now() - make_interval(secs => $2));

-- name: processes
-- Who has the database open, and for how long nothing was heard of each, where we may see that.
SELECT application_name,
       min(extract(epoch FROM clock_timestamp() - state_change))::float8
FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'holdfast %/%'
GROUP BY application_name ORDER BY application_name COLLATE "C";

-- name: stalled
-- Runs whose drivers were not heard of, each with its worker and for how long.
SELECT jobs.lock, coalesce(jobs.worker_id, 0),
       coalesce(extract(epoch FROM now() - last_heartbeat), 0)::float8
FROM procrastinate_jobs AS jobs
LEFT JOIN procrastinate_workers AS workers ON workers.id = jobs.worker_id
WHERE queue_name = 'drive' AND jobs.status = 'doing'
  AND (last_heartbeat IS NULL OR last_heartbeat < now() - make_interval(secs => $1))
ORDER BY jobs.id LIMIT $2;

-- name: retried
-- Runs whose drives have failed, again and again, each with how often it was tried; first those that
-- were tried most.
SELECT lock, attempts FROM procrastinate_jobs
WHERE queue_name = 'drive' AND status IN ('todo', 'doing')
  AND (attempts >= $2
       OR (status = 'todo' AND scheduled_at > clock_timestamp() + make_interval(secs => $1)))
ORDER BY attempts DESC, id LIMIT $3;

-- name: overdue
-- Runs whose timer came so long ago and was not taken, the earliest first.
SELECT run_id, (extract(epoch FROM clock_timestamp()) - wake_at)::float8 FROM runs
WHERE wake_at IS NOT NULL AND NOT active
  AND wake_at <= extract(epoch FROM clock_timestamp()) - $1
ORDER BY wake_at LIMIT $2;

-- name: transactions
-- What others have open in this database for so long, the oldest first; who has written holds back
-- the order of commits.
SELECT seconds, holder, writes FROM (
    SELECT extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds,
           format('pid %s (%s, %s)', pid, coalesce(nullif(application_name, ''), 'unnamed'), state)
               AS holder,
           backend_xid IS NOT NULL AS writes
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend'
      AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
    UNION ALL
    SELECT extract(epoch FROM clock_timestamp() - prepared)::float8,
           format('prepared transaction %s', gid), true
    FROM pg_prepared_xacts WHERE database = current_database()
) AS open
WHERE seconds >= $1 ORDER BY seconds DESC LIMIT $2;

-- name: connections
-- How many connections the server has, of how many that ordinary users may have; whether some in
-- this database are of users whose doings we may not see.
SELECT count(*), current_setting('max_connections')::bigint
                     - current_setting('superuser_reserved_connections')::bigint,
       coalesce(bool_or(backend_type IS NULL AND datname = current_database()), false)
FROM pg_stat_activity
WHERE backend_type = 'client backend' OR (backend_type IS NULL AND usesysid IS NOT NULL);

-- name: quarantined
-- Of the newest runs in error those that took their drivers down too often.
SELECT run_id FROM (
    SELECT id, run_id, version FROM runs WHERE status = 'error' ORDER BY id DESC LIMIT $1
) AS failed
WHERE EXISTS (
    SELECT FROM events WHERE run = failed.id AND seq > failed.version - 16
    AND payload LIKE '%quarantined: %'
)
ORDER BY id;

-- name: late
-- Runs that have kept a late result, among so many of the newest commits.
SELECT DISTINCT runs.run_id FROM (
    SELECT run, first, last FROM commits ORDER BY position DESC LIMIT $1
) AS newest
JOIN events ON events.run = newest.run AND events.seq BETWEEN newest.first AND newest.last
JOIN runs ON runs.id = newest.run
WHERE split_part(events.type, '@', 1) = 'LateResultKept' ORDER BY runs.run_id;
