-- name: definitions
-- Plan bodies and their like, behind a digest.
SELECT digest, kind, name, body, stored_at, meta, crc FROM definitions
WHERE digest > $1::text ORDER BY digest;

-- name: runs
-- Rows of runs with their versions, behind a number.
SELECT id, run_id, version, kind, name, definition, status, active, wake_at, root_id, parent_id,
       created_at, updated_at, title, summary
FROM runs WHERE id > $1::bigint ORDER BY id;

-- name: old_events
-- Records of which no position is known, which come before all others, behind a place.
WITH placed AS (SELECT run, min(first) AS first FROM commits GROUP BY run)
SELECT ((events.run << 32) | events.seq) - (1::bigint << 62), events.run, events.seq, runs.run_id,
       events.at, events.type, events.payload, events.crc
FROM runs LEFT JOIN placed ON placed.run = runs.id
JOIN events ON events.run = runs.id AND events.seq < coalesce(placed.first, runs.version + 1)
WHERE coalesce(placed.first, 2) > 1
  AND ((events.run << 32) | events.seq) - (1::bigint << 62) > $1::bigint
ORDER BY events.run, events.seq;

-- name: events
-- Records in the order of their commits, behind a position.
SELECT commits.position - commits.last + events.seq, events.run, events.seq, runs.run_id, events.at,
       events.type, events.payload, events.crc
FROM commits JOIN runs ON runs.id = commits.run
JOIN events ON events.run = commits.run AND events.seq BETWEEN commits.first AND commits.last
WHERE commits.position > $1::bigint AND commits.position - commits.last + events.seq > $1::bigint
ORDER BY commits.position, events.seq;

-- name: questions
-- Questions, behind a number.
SELECT id, question_id, run_id, root_id, status, type, title, role, opened_at, deadline, closed_at,
       body, crc
FROM questions WHERE id > $1::bigint ORDER BY id;

-- name: notices
-- Notices that are not heard yet, behind a number.
SELECT id, target_id, source_id, seq, payload FROM notices WHERE id > $1::bigint ORDER BY id;

-- name: snapshots
-- Snapshots, behind a run's number.
SELECT snapshots.run, runs.run_id, snapshots.version, snapshots.schema, snapshots.payload,
       snapshots.crc
FROM snapshots JOIN runs ON runs.id = snapshots.run
WHERE snapshots.run > $1::bigint ORDER BY snapshots.run;

-- name: kept
-- What is kept by name, behind a name.
SELECT kind, key, body, expires_at, crc FROM kept
WHERE (kind, key) > ($1::text, $2::text) ORDER BY kind, key;

-- name: audit
-- The audit chain, behind a number.
SELECT number, at, who, action, subject, run_id, seen, origin, detail, previous, digest
FROM audit WHERE number > $1::bigint ORDER BY number;

-- name: series
-- Up to which number ids of runs were given, behind a name.
SELECT name, last FROM series WHERE name > $1::text ORDER BY name;

-- name: standing
-- How far everything is, and whether anything is not sealed yet.
SELECT position, forgotten, digest,
       greatest(coalesce((SELECT max(id) FROM runs), 0),
                coalesce(pg_sequence_last_value(
                    pg_get_serial_sequence('runs', 'id')::regclass), 0)),
       (SELECT count(*) FROM runs),
       EXISTS (SELECT FROM unsealed) OR EXISTS (SELECT FROM deeds)
FROM seal WHERE id = 1;

-- name: is_used
-- Whether anything was ever written here.
SELECT position > 0 OR EXISTS (SELECT FROM runs) OR EXISTS (SELECT FROM kept)
       OR EXISTS (SELECT FROM audit) OR EXISTS (SELECT FROM definitions)
       OR EXISTS (SELECT FROM unsealed) OR EXISTS (SELECT FROM deeds)
FROM seal WHERE id = 1;

-- name: connected
-- Who else of ours has this database open.
SELECT coalesce(host(client_addr), 'this machine'), count(*), min(backend_start)::text
FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'holdfast%'
  AND NOT pid = ANY($1::bigint[])
GROUP BY 1 ORDER BY 1;

-- name: working
-- Workers that are alive, and how many jobs each is at.
SELECT id, extract(epoch FROM now() - last_heartbeat)::float8, (
    SELECT count(*) FROM procrastinate_jobs AS jobs
    WHERE jobs.worker_id = workers.id AND jobs.status = 'doing'
)
FROM procrastinate_workers AS workers
WHERE last_heartbeat > now() - make_interval(secs => $1::float8) ORDER BY id;

-- name: last_definitions
-- Where to go on with definitions.
SELECT digest FROM definitions ORDER BY digest DESC LIMIT 1;

-- name: last_runs
-- Where to go on with rows of runs.
SELECT id FROM runs ORDER BY id DESC LIMIT 1;

-- name: last_events
-- Where to go on with records: behind the newest position, or the last place without one.
SELECT coalesce(
    (SELECT max(position) FROM commits),
    (SELECT ((run << 32) | seq) - (1::bigint << 62) FROM events ORDER BY run DESC, seq DESC LIMIT 1)
) WHERE EXISTS (SELECT FROM events);

-- name: last_questions
-- Where to go on with questions.
SELECT id FROM questions ORDER BY id DESC LIMIT 1;

-- name: last_notices
-- Where to go on with notices.
SELECT id FROM notices ORDER BY id DESC LIMIT 1;

-- name: last_snapshots
-- Where to go on with snapshots.
SELECT run FROM snapshots ORDER BY run DESC LIMIT 1;

-- name: last_kept
-- Where to go on with what is kept.
SELECT kind, key FROM kept ORDER BY kind DESC, key DESC LIMIT 1;

-- name: last_audit
-- Where to go on with the audit chain.
SELECT number FROM audit ORDER BY number DESC LIMIT 1;

-- name: last_series
-- Where to go on with numbers in ids of runs.
SELECT name FROM series ORDER BY name DESC LIMIT 1;

-- name: put_definitions
-- Adds definitions.
INSERT INTO definitions (digest, kind, name, body, stored_at, meta, crc)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::double precision[],
                     $6::text[], $7::bigint[]);

-- name: put_runs
-- Adds rows of runs.
INSERT INTO runs (id, run_id, version, kind, name, definition, status, active, wake_at, root_id,
                  parent_id, created_at, updated_at, title, summary)
OVERRIDING SYSTEM VALUE
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[],
                     $7::text[], $8::boolean[], $9::double precision[], $10::text[], $11::text[],
                     $12::double precision[], $13::double precision[], $14::text[], $15::text[]);

-- name: put_events
-- Adds records, and their stretches in the order of all commits.
WITH placed AS (
    INSERT INTO commits (position, run, first, last)
    SELECT * FROM unnest($7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
)
INSERT INTO events (run, seq, at, type, payload, crc)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::double precision[], $4::text[], $5::text[],
                     $6::bigint[]);

-- name: put_questions
-- Adds questions.
INSERT INTO questions (id, question_id, run_id, root_id, status, type, title, role, opened_at,
                       deadline, closed_at, body, crc)
OVERRIDING SYSTEM VALUE
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
                     $7::text[], $8::text[], $9::double precision[], $10::double precision[],
                     $11::double precision[], $12::text[], $13::bigint[]);

-- name: put_notices
-- Adds notices.
INSERT INTO notices (id, target_id, source_id, seq, payload)
OVERRIDING SYSTEM VALUE
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[]);

-- name: put_snapshots
-- Adds snapshots.
INSERT INTO snapshots (run, version, schema, payload, crc)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[]);

-- name: put_kept
-- Adds what is kept.
INSERT INTO kept (kind, key, body, expires_at, crc)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::double precision[], $5::bigint[]);

-- name: put_audit
-- Adds entries to the audit chain.
INSERT INTO audit (number, at, who, action, subject, run_id, seen, origin, detail, previous, digest)
SELECT * FROM unnest($1::bigint[], $2::double precision[], $3::text[], $4::text[], $5::text[],
                     $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[]);

-- name: put_series
-- Notes up to which number ids were given.
INSERT INTO series (name, last) SELECT * FROM unnest($1::text[], $2::bigint[]);

-- name: make_mark
-- A place for the mark of a copy that is not finished.
CREATE TABLE copying (source text NOT NULL, standing text NOT NULL);

-- name: set_mark
-- Marks a copy that is not finished.
INSERT INTO copying (source, standing) VALUES ($1, $2);

-- name: has_mark
-- Whether a copy into this database is not finished.
SELECT to_regclass('copying') IS NOT NULL;

-- name: mark
-- The mark of a copy that is not finished.
SELECT source, standing FROM copying;

-- name: remove_mark
-- The copy is whole.
DROP TABLE copying;

-- name: note_positions
-- Writes down which positions were given, and where the chain ends.
UPDATE seal SET position = $1::bigint, forgotten = $2::bigint, digest = $3::text,
                number = coalesce((SELECT max(audit.number) FROM audit), 0)
WHERE id = 1;

-- name: note_numbers
-- New rows have numbers of their own.
SELECT setval(pg_get_serial_sequence('runs', 'id'), greatest($1::bigint, 1), $1::bigint > 0),
       setval(pg_get_serial_sequence('questions', 'id'),
              coalesce((SELECT max(id) FROM questions), 1), EXISTS (SELECT FROM questions)),
       setval(pg_get_serial_sequence('notices', 'id'),
              coalesce((SELECT max(id) FROM notices), 1), EXISTS (SELECT FROM notices));

-- name: gather_statistics
-- Lets the planner know what is there.
ANALYZE;
