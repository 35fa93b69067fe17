-- name: append_one
-- A plain append of one run: moves it on, writes its records, and notes them for sealing.
WITH moved AS (
    UPDATE runs SET version = $3
    WHERE run_id = $1 AND version = $2
      AND ($4::bigint IS NULL OR (driver_job = $4 AND driver_attempt = $5::bigint))
    RETURNING id
), written AS (
    INSERT INTO events (run, seq, at, type, payload, crc)
    SELECT moved.id, new.seq, new.at, new.type, new.payload, new.crc
    FROM moved CROSS JOIN (VALUES /* records */) AS new (seq, at, type, payload, crc)
), noted AS (
    INSERT INTO unsealed (place, run, first, last) SELECT 0, id, $2 + 1, $3 FROM moved
)
SELECT 0 FROM moved;

-- name: append_one_with_row
-- The same with the run's row renewed, and where its driver ends, without that one's job.
WITH moved AS (
    UPDATE runs SET version = $3, status = $6, active = $7, wake_at = $8, updated_at = $9,
                    title = $10, summary = $11
    WHERE run_id = $1 AND version = $2
      AND ($4::bigint IS NULL OR (driver_job = $4 AND driver_attempt = $5::bigint))
    RETURNING id
), written AS (
    INSERT INTO events (run, seq, at, type, payload, crc)
    SELECT moved.id, new.seq, new.at, new.type, new.payload, new.crc
    FROM moved CROSS JOIN (VALUES /* records */) AS new (seq, at, type, payload, crc)
), noted AS (
    INSERT INTO unsealed (place, run, first, last) SELECT 0, id, $2 + 1, $3 FROM moved
), ended AS (
    DELETE FROM procrastinate_jobs
    WHERE id = $12::bigint AND (SELECT count(*) FROM moved) = 1
)
SELECT 0 FROM moved;

-- name: append_many
-- Plain appends of several runs, each on its own condition; the places of those that happened.
WITH moved AS (
    UPDATE runs SET version = given.version
    FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[],
                $6::bigint[])
         AS given (place, run_id, expected, version, job, attempt)
    WHERE runs.run_id = given.run_id AND runs.version = given.expected
      AND (given.job IS NULL
           OR (runs.driver_job = given.job AND runs.driver_attempt = given.attempt))
    RETURNING given.place, runs.id, given.expected, given.version
), written AS (
    INSERT INTO events (run, seq, at, type, payload, crc)
    SELECT moved.id, new.seq, new.at, new.type, new.payload, new.crc
    FROM unnest($7::bigint[], $8::bigint[], $9::double precision[], $10::text[], $11::text[],
                $12::bigint[])
         AS new (place, seq, at, type, payload, crc)
    JOIN moved ON moved.place = new.place
), noted AS (
    INSERT INTO unsealed (place, run, first, last)
    SELECT place, id, expected + 1, version FROM moved WHERE version > expected
)
SELECT place FROM moved;

-- name: append_many_with_rows
-- The same, with those rows renewed that are given.
WITH moved AS (
    UPDATE runs SET version = given.version,
                    status = coalesce(given.status, runs.status),
                    active = coalesce(given.active, runs.active),
                    wake_at = CASE WHEN given.status IS NULL THEN runs.wake_at
                                   ELSE given.wake_at END,
                    updated_at = coalesce(given.updated_at, runs.updated_at),
                    title = coalesce(given.title, runs.title),
                    summary = coalesce(given.summary, runs.summary)
    FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[],
                $6::bigint[], $13::text[], $14::boolean[], $15::double precision[],
                $16::double precision[], $17::text[], $18::text[])
         AS given (place, run_id, expected, version, job, attempt, status, active, wake_at,
                   updated_at, title, summary)
    WHERE runs.run_id = given.run_id AND runs.version = given.expected
      AND (given.job IS NULL
           OR (runs.driver_job = given.job AND runs.driver_attempt = given.attempt))
    RETURNING given.place, runs.id, given.expected, given.version
), written AS (
    INSERT INTO events (run, seq, at, type, payload, crc)
    SELECT moved.id, new.seq, new.at, new.type, new.payload, new.crc
    FROM unnest($7::bigint[], $8::bigint[], $9::double precision[], $10::text[], $11::text[],
                $12::bigint[])
         AS new (place, seq, at, type, payload, crc)
    JOIN moved ON moved.place = new.place
), noted AS (
    INSERT INTO unsealed (place, run, first, last)
    SELECT place, id, expected + 1, version FROM moved WHERE version > expected
)
SELECT place FROM moved;

-- name: bear_many
-- New runs with their first records; the ids of those that did not exist.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[],
                         $12::text[], $13::text[], $14::text[], $15::text[], $16::boolean[],
                         $17::double precision[], $18::text[], $19::text[],
                         $20::double precision[], $21::double precision[], $22::text[],
                         $23::text[])
    AS given (place, run_id, version, job, attempt, kind, name, definition, status, active,
              wake_at, root_id, parent_id, created_at, updated_at, title, summary)
), born AS (
    INSERT INTO runs (run_id, version, driver_job, driver_attempt, kind, name, definition, status,
                      active, wake_at, root_id, parent_id, created_at, updated_at, title, summary)
    SELECT run_id, version, job, attempt, kind, name, definition, status, active, wake_at,
           root_id, parent_id, created_at, updated_at, title, summary
    FROM given ORDER BY place
    ON CONFLICT (run_id) DO NOTHING
    RETURNING id, run_id, version
), written AS (
    INSERT INTO events (run, seq, at, type, payload, crc)
    SELECT born.id, new.seq, new.at, new.type, new.payload, new.crc
    FROM unnest($6::bigint[], $7::bigint[], $8::double precision[], $9::text[], $10::text[],
                $11::bigint[])
         AS new (place, seq, at, type, payload, crc)
    JOIN given ON given.place = new.place
    JOIN born ON born.run_id = given.run_id
), noted AS (
    INSERT INTO unsealed (place, run, first, last)
    SELECT given.place, born.id, 1, born.version FROM born JOIN given ON given.run_id = born.run_id
)
SELECT given.place FROM born JOIN given ON given.run_id = born.run_id;

-- name: lock_runs
-- Whether runs go on by themselves, which stays so until the end of the transaction.
SELECT run_id, active FROM runs WHERE run_id = ANY($1::text[]) ORDER BY run_id FOR UPDATE;

-- name: drivers
-- Who drives some runs.
SELECT run_id, driver_job, driver_attempt FROM runs WHERE run_id = ANY($1::text[]);

-- name: take
-- Makes a job's attempt the driver of a run, unless a later one has been; the run's version.
UPDATE runs SET driver_job = $2, driver_attempt = $3
WHERE run_id = $1
  AND (driver_job IS NULL OR (driver_job, driver_attempt) <= ($2, $3::bigint))
RETURNING version;

-- name: put_questions
-- Opens questions, or renews what may change of them.
INSERT INTO questions (question_id, run_id, root_id, status, type, title, role, opened_at,
                       deadline, closed_at, body, crc)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
                     $7::text[], $8::double precision[], $9::double precision[],
                     $10::double precision[], $11::text[], $12::bigint[])
ON CONFLICT (question_id) DO UPDATE
SET status = excluded.status, title = excluded.title, role = excluded.role,
    deadline = excluded.deadline, closed_at = excluded.closed_at, body = excluded.body,
    crc = excluded.crc;

-- name: leave_notices
-- Leaves messages for other runs, each once.
INSERT INTO notices (target_id, source_id, seq, payload)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[])
ON CONFLICT (target_id, source_id, seq) DO NOTHING;

-- name: hear_notices
-- Removes notices that their targets have taken in.
DELETE FROM notices USING unnest($1::text[], $2::text[], $3::bigint[])
                          AS heard (target_id, source_id, seq)
WHERE notices.target_id = heard.target_id AND notices.source_id = heard.source_id
  AND notices.seq = heard.seq;

-- name: spend
-- Removes what is kept under some names and has not expired; the names of what was there.
DELETE FROM kept USING unnest($1::text[], $2::text[], $3::double precision[])
                       AS spent (kind, key, at)
WHERE kept.kind = spent.kind AND kept.key = spent.key
  AND (kept.expires_at IS NULL OR kept.expires_at > spent.at)
RETURNING kept.kind, kept.key;

-- name: claim
-- Keeps things under names that are free, or whose time is over; the names of what is kept now.
WITH given AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::double precision[],
                         $5::bigint[], $6::double precision[])
             AS given (kind, key, body, expires_at, crc, at)
), gone AS (
    SELECT kept.kind, kept.key FROM kept JOIN given USING (kind, key)
    WHERE kept.expires_at <= given.at FOR UPDATE OF kept
)
INSERT INTO kept (kind, key, body, expires_at, crc)
SELECT kind, key, body, expires_at, crc FROM given
ON CONFLICT (kind, key) DO UPDATE
SET body = excluded.body, expires_at = excluded.expires_at, crc = excluded.crc
WHERE (kept.kind, kept.key) IN (SELECT kind, key FROM gone)
RETURNING kind, key;

-- name: drop_kept
-- Removes what is kept under some names.
DELETE FROM kept USING unnest($1::text[], $2::text[]) AS dropped (kind, key)
WHERE kept.kind = dropped.kind AND kept.key = dropped.key;

-- name: keep
-- Keeps things under their names, in place of what was there.
INSERT INTO kept (kind, key, body, expires_at, crc)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::double precision[], $5::bigint[])
ON CONFLICT (kind, key) DO UPDATE
SET body = excluded.body, expires_at = excluded.expires_at, crc = excluded.crc;

-- name: drop_expired
-- Removes some of what has expired, without waiting for locks.
DELETE FROM kept WHERE (kind, key) IN (
    SELECT kind, key FROM kept WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED
);

-- name: add_deeds
-- Writes down who did what; their numbers come when they are sealed.
INSERT INTO deeds (place, at, who, action, subject, run_id, seen, origin, detail)
SELECT * FROM unnest($1::bigint[], $2::double precision[], $3::text[], $4::text[], $5::text[],
                     $6::text[], $7::text[], $8::text[], $9::text[]);

-- name: defer_drives
-- Has runs driven; a job that waits already is enough, and no worker begins it before the commit.
-- Since when it waits stands in `scheduled_at`.
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, scheduled_at)
SELECT 'drive', 'holdfast.drive', run_id, run_id, jsonb_build_object('run_id', run_id), now()
FROM unnest($1::text[]) AS given (run_id)
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO UPDATE
SET queueing_lock = excluded.queueing_lock
RETURNING id;

-- name: begin_drives
-- Jobs that this process's worker has in hand from the start.
INSERT INTO procrastinate_jobs (id, queue_name, task_name, lock, queueing_lock, args, status,
                                attempts, worker_id)
SELECT job, 'drive', 'holdfast.drive', run_id, run_id, jsonb_build_object('run_id', run_id),
       'doing', attempt, $4::bigint
FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS given (job, attempt, run_id);

-- name: end_drives
-- Removes jobs whose drivers have ended.
DELETE FROM procrastinate_jobs WHERE id = ANY($1::bigint[]);

-- name: store_definition
-- Stores a definition by its digest, once.
INSERT INTO definitions (digest, kind, name, body, stored_at, meta, crc)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (digest) DO NOTHING;

-- name: save_snapshot
-- Keeps a snapshot, unless it is ahead of its run or older than another; no disk is waited for.
WITH hurried AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO snapshots (run, version, schema, payload, crc)
SELECT runs.id, $2::bigint, $3::bigint, $4::text, $5::bigint
FROM runs CROSS JOIN hurried WHERE runs.run_id = $1 AND runs.version >= $2
ON CONFLICT (run) DO UPDATE
SET version = excluded.version, schema = excluded.schema, payload = excluded.payload,
    crc = excluded.crc
WHERE excluded.version >= snapshots.version OR excluded.schema <> snapshots.schema;

-- name: count_on
-- The last of so many new numbers of a series that has begun; no disk is waited for.
WITH hurried AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
UPDATE series SET last = last + $2 FROM hurried WHERE name = $1 RETURNING last;

-- name: count_behind
-- The same for a series that has not begun, or that others have passed by.
INSERT INTO series AS held (name, last) VALUES ($1, $3::bigint + $2)
ON CONFLICT (name) DO UPDATE SET last = greatest(held.last, $3) + $2
RETURNING last;

-- name: in_use
-- Which of some runs exist.
SELECT run_id FROM runs WHERE run_id = ANY($1::text[]);

-- name: highest_number
-- The last of the root runs whose ids have one length and lie between two others.
SELECT run_id FROM runs
WHERE parent_id IS NULL AND length(run_id) = $1 AND run_id BETWEEN $2 AND $3
  AND substr(run_id, $4::integer) !~ '[^0-9]'
ORDER BY run_id DESC LIMIT 1;

-- name: reserve_jobs
-- Ids for new jobs.
SELECT nextval('procrastinate_jobs_id_seq') FROM generate_series(1, $1);

-- name: wake_due
-- Has runs driven whose timer has come; how many, and one of the jobs.
WITH due AS (
    SELECT id FROM runs
    WHERE wake_at IS NOT NULL AND NOT active AND wake_at <= $1
    ORDER BY wake_at LIMIT $2 FOR UPDATE SKIP LOCKED
), woken AS (
    UPDATE runs SET active = true WHERE id = ANY(ARRAY(SELECT id FROM due)) RETURNING run_id
), jobs AS (
    INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, scheduled_at)
    SELECT 'drive', 'holdfast.drive', run_id, run_id, jsonb_build_object('run_id', run_id), now()
    FROM woken
    ON CONFLICT (queueing_lock) WHERE status = 'todo' DO UPDATE
    SET queueing_lock = excluded.queueing_lock
    RETURNING id
)
SELECT (SELECT count(*) FROM woken), (SELECT max(id) FROM jobs);

-- name: forgotten_runs
-- Runs that should be driven and have no job.
SELECT run_id FROM (
    SELECT run_id FROM runs WHERE active
    UNION
    SELECT run_id FROM notices JOIN runs ON runs.run_id = notices.target_id
) AS needy
WHERE NOT EXISTS (
    SELECT FROM procrastinate_jobs AS jobs
    WHERE jobs.lock = needy.run_id COLLATE "default" AND jobs.status = 'doing'
) AND NOT EXISTS (
    SELECT FROM procrastinate_jobs AS jobs
    WHERE jobs.queueing_lock = needy.run_id COLLATE "default" AND jobs.status = 'todo'
)
LIMIT $1;
