-- name: read_events
-- A run's version and a stretch of its records, in order.
SELECT runs.version, stretch.* FROM runs LEFT JOIN LATERAL (
    SELECT seq, at, type, payload, crc FROM events
    WHERE events.run = runs.id AND seq > $2 ORDER BY seq LIMIT $3
) AS stretch ON true
WHERE runs.run_id = $1 ORDER BY stretch.seq;

-- name: read_events_within
-- The same, as far as their payloads stay within so many bytes, and the one that goes beyond.
SELECT runs.version, stretch.seq, stretch.at, stretch.type, stretch.payload, stretch.crc
FROM runs LEFT JOIN LATERAL (
    SELECT *, sum(octet_length(payload)) OVER (ORDER BY seq) - octet_length(payload) AS before
    FROM (
        SELECT seq, at, type, payload, crc FROM events
        WHERE events.run = runs.id AND seq > $2 ORDER BY seq LIMIT $3
    ) AS page
) AS stretch ON stretch.before < $4
WHERE runs.run_id = $1 ORDER BY stretch.seq;

-- name: version
-- A run's version.
SELECT version FROM runs WHERE run_id = $1;

-- name: versions
-- The versions of some runs.
SELECT run_id, version FROM runs WHERE run_id = ANY($1::text[]);

-- name: run
-- One run's row.
SELECT run_id, kind, name, definition, status, active, wake_at, root_id, parent_id,
       created_at, updated_at, title, summary
FROM runs WHERE run_id = $1;

-- name: locate_run
-- A run's number, by which lists are ordered.
SELECT id FROM runs WHERE run_id = $1;

-- name: runs_newest
-- A page of runs, newest first; what is asked for follows.
SELECT run_id, kind, name, definition, status, active, wake_at, root_id, parent_id,
       created_at, updated_at, title, summary, id
FROM runs
WHERE id < $1 /* conditions */
ORDER BY id DESC LIMIT $2;

-- name: run_counts
-- How many runs there are of each kind and status.
SELECT kind, status, count(*) FROM runs GROUP BY kind, status;

-- name: question_counts
-- How many questions there are of each status and type.
SELECT status, type, count(*) FROM questions GROUP BY status, type;

-- name: active_runs
-- Everything that goes on by itself, in order of creation.
SELECT run_id FROM runs WHERE active ORDER BY id;

-- name: due_runs
-- Runs whose timer has come, the earliest first.
SELECT run_id FROM runs WHERE wake_at IS NOT NULL AND wake_at <= $1 ORDER BY wake_at, id LIMIT $2;

-- name: next_wake
-- The earliest timer after a moment.
SELECT min(wake_at) FROM runs WHERE wake_at IS NOT NULL AND wake_at > $1;

-- name: question
-- One question.
SELECT question_id, run_id, root_id, status, type, title, role, opened_at, deadline, closed_at,
       body, crc
FROM questions WHERE question_id = $1;

-- name: locate_question
-- A question's number, by which lists are ordered.
SELECT id FROM questions WHERE question_id = $1;

-- name: questions_oldest
-- A page of questions, oldest first; what is asked for follows.
SELECT question_id, run_id, root_id, status, type, title, role, opened_at, deadline, closed_at,
       body, crc, id
FROM questions
WHERE id > $1 /* conditions */
ORDER BY id LIMIT $2;

-- name: questions_newest
-- The same from the other end.
SELECT question_id, run_id, root_id, status, type, title, role, opened_at, deadline, closed_at,
       body, crc, id
FROM questions
WHERE id < $1 /* conditions */
ORDER BY id DESC LIMIT $2;

-- name: notices
-- Everything that has not been heard yet, in order.
SELECT target_id, source_id, seq, payload FROM notices ORDER BY id;

-- name: notices_for
-- What some runs have not heard yet, in order.
SELECT target_id, source_id, seq, payload FROM notices
WHERE target_id = ANY($1::text[]) ORDER BY id;

-- name: snapshot
-- A run's snapshot, if this program's schema wrote it.
SELECT snapshots.version, snapshots.schema, snapshots.payload, snapshots.crc
FROM snapshots JOIN runs ON runs.id = snapshots.run
WHERE runs.run_id = $1 AND snapshots.schema = $2;

-- name: definition
-- A definition by its digest.
SELECT digest, kind, name, body, stored_at, meta, crc FROM definitions WHERE digest = $1;

-- name: definitions
-- Everything stored under one name, the newest first.
SELECT digest, kind, name, body, stored_at, meta, crc FROM definitions
WHERE kind = $1 AND name = $2 ORDER BY stored_at DESC, digest DESC;

-- name: kept
-- What is kept under a name, unless it has expired.
SELECT kind, key, body, expires_at, crc FROM kept
WHERE kind = $1 AND key = $2 AND (expires_at IS NULL OR expires_at > $3);

-- name: all_kept
-- Everything of one kind that has not expired, in order of the keys.
SELECT kind, key, body, expires_at, crc FROM kept
WHERE kind = $1 AND (expires_at IS NULL OR expires_at > $2) ORDER BY key;

-- name: commits
-- The stretches behind a position, each with its run.
SELECT commits.position, runs.run_id, commits.first, commits.last
FROM commits JOIN runs ON runs.id = commits.run
WHERE commits.position > $1 ORDER BY commits.position LIMIT $2;

-- name: audit
-- A stretch of the audit chain.
SELECT number, at, who, action, subject, run_id, seen, origin, detail, previous, digest
FROM audit WHERE number > $1 ORDER BY number LIMIT $2;
