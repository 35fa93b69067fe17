-- name: definitions
-- Plan bodies and their like, behind a digest.
SELECT digest, kind, name, body, stored_at, meta, crc FROM definitions
WHERE digest > ? ORDER BY digest;

-- name: runs
-- Rows of runs with their versions, behind a number.
SELECT id, run_id, coalesce((
           SELECT max(place) & 0xFFFFFFFF FROM places
           WHERE place BETWEEN (runs.id << 32) AND ((runs.id << 32) | 0xFFFFFFFF)
       ), 0), kind, name, definition, status, active, wake_at, root_id, parent_id, created_at,
       updated_at, title, summary
FROM runs WHERE id > ? ORDER BY id;

-- name: events
-- Records in the order of their commits, behind a position, as the bytes that their checksums are of.
SELECT events.position, events.place, runs.run_id, events.at, CAST(events.type AS BLOB),
       CAST(events.payload AS BLOB), events.crc, runs.crc_after
FROM events CROSS JOIN runs ON runs.id = events.place >> 32
WHERE events.position > ? ORDER BY events.position;

-- name: questions
-- Questions, behind a number.
SELECT id, question_id, run_id, root_id, status, type, title, role, opened_at, deadline, closed_at,
       body, crc
FROM questions WHERE id > ? ORDER BY id;

-- name: notices
-- Notices that are not heard yet, behind a number.
SELECT id, target_id, source_id, seq, payload FROM notices WHERE id > ? ORDER BY id;

-- name: snapshots
-- Snapshots, behind a run's number.
SELECT snapshots.run, runs.run_id, snapshots.version, snapshots.schema,
       CAST(snapshots.payload AS BLOB), snapshots.crc
FROM snapshots CROSS JOIN runs ON runs.id = snapshots.run
WHERE snapshots.run > ? ORDER BY snapshots.run;

-- name: kept
-- What is kept by name, behind a name.
SELECT kind, key, body, expires_at, crc FROM kept WHERE (kind, key) > (?, ?) ORDER BY kind, key;

-- name: audit
-- The audit chain, behind a number.
SELECT number, at, who, action, subject, run_id, seen, origin, detail, previous, digest
FROM audit WHERE number > ? ORDER BY number;

-- name: series
-- Up to which number ids of runs were given, behind a name.
SELECT name, last FROM series WHERE name > ? ORDER BY name;

-- name: standing
-- How far everything is: positions, the chain, runs, and what is kept.
SELECT max(given, coalesce((SELECT max(position) FROM events), 0)), forgotten,
       coalesce((SELECT digest FROM audit ORDER BY number DESC LIMIT 1), ''),
       max(run, coalesce((SELECT max(id) FROM runs), 0)),
       (SELECT count(*) FROM runs)
FROM positions WHERE id = 1;

-- name: is_used
-- Whether anything was ever written here.
SELECT given > 0 OR EXISTS (SELECT 1 FROM runs) OR EXISTS (SELECT 1 FROM kept)
       OR EXISTS (SELECT 1 FROM audit) OR EXISTS (SELECT 1 FROM definitions)
FROM positions WHERE id = 1;

-- name: last_definitions
-- Where to go on with definitions.
SELECT digest FROM definitions ORDER BY digest DESC LIMIT 1;

-- name: last_runs
-- Where to go on with rows of runs.
SELECT id FROM runs ORDER BY id DESC LIMIT 1;

-- name: last_events
-- Where to go on with records.
SELECT position FROM events ORDER BY position DESC LIMIT 1;

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
-- Adds a definition.
INSERT INTO definitions (digest, kind, name, body, stored_at, meta, crc)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: put_runs
-- Adds a run's row.
INSERT INTO runs (id, run_id, kind, name, definition, status, active, wake_at, root_id, parent_id,
                  created_at, updated_at, title, summary)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_events
-- Adds a record.
INSERT INTO events (position, place, at, type, payload, crc) VALUES (?, ?, ?, ?, ?, ?);

-- name: put_places
-- Writes down where a record lies.
INSERT INTO places (place, position) VALUES (?, ?);

-- name: note_placed
-- Writes down up to which position it is known where records lie.
UPDATE positions SET placed = ? WHERE id = 1;

-- name: put_questions
-- Adds a question.
INSERT INTO questions (id, question_id, run_id, root_id, status, type, title, role, opened_at,
                       deadline, closed_at, body, crc)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_notices
-- Adds a notice.
INSERT INTO notices (id, target_id, source_id, seq, payload) VALUES (?, ?, ?, ?, ?);

-- name: put_snapshots
-- Adds a snapshot.
INSERT INTO snapshots (run, version, schema, payload, crc) VALUES (?, ?, ?, ?, ?);

-- name: put_kept
-- Adds something that is kept.
INSERT INTO kept (kind, key, body, expires_at, crc) VALUES (?, ?, ?, ?, ?);

-- name: put_audit
-- Adds an entry to the audit chain.
INSERT INTO audit (number, at, who, action, subject, run_id, seen, origin, detail, previous, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_series
-- Notes up to which number ids were given.
INSERT INTO series (name, last) VALUES (?, ?);

-- name: make_mark
-- A place for the mark of a copy that is not finished.
CREATE TABLE copying (source TEXT NOT NULL, standing TEXT NOT NULL);

-- name: set_mark
-- Marks a copy that is not finished.
INSERT INTO copying (source, standing) VALUES (?, ?);

-- name: mark
-- The mark of a copy that is not finished.
SELECT source, standing FROM copying;

-- name: remove_mark
-- The copy is whole.
DROP TABLE copying;

-- name: note_positions
-- Writes down which positions and numbers were given.
UPDATE positions SET given = :given, forgotten = :forgotten, run = :run WHERE id = 1;
