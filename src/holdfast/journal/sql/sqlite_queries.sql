-- name: locate_run
-- A run's number, its version, which is that of its last record, and its last one of old.
SELECT id, coalesce((
    SELECT max(place) & 0xFFFFFFFF FROM tail
    WHERE place BETWEEN (runs.id << 32) AND ((runs.id << 32) | 0xFFFFFFFF)
), (
    SELECT place & 0xFFFFFFFF FROM places
    WHERE place BETWEEN (runs.id << 32) AND ((runs.id << 32) | 0xFFFFFFFF)
    ORDER BY place DESC LIMIT 1
)), crc_after
FROM runs WHERE run_id = ?;

-- name: create_run
-- Gives a new run its number and its row; nothing when the run exists.
INSERT INTO runs (id, run_id, kind, name, definition, status, active, wake_at,
                  root_id, parent_id, created_at, updated_at, title, summary)
SELECT max(coalesce((SELECT max(id) FROM runs), 0), run) + 1,
       ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
FROM positions WHERE id = 1
ON CONFLICT (run_id) DO NOTHING
RETURNING id;

-- name: describe_run
-- Renews what no index covers; returns what the indexes hold.
UPDATE runs SET updated_at = ?, title = ?, summary = ? WHERE id = ?
RETURNING status, active, wake_at;

-- name: index_run
-- Renews what the indexes cover, done only when it has changed.
UPDATE runs SET status = ?, active = ?, wake_at = ? WHERE id = ?;

-- name: add_event
-- Adds one record at its place, behind all others.
INSERT INTO events (position, place, at, type, payload, crc) VALUES (?, ?, ?, ?, ?, ?);

-- name: place_tail
-- Writes down where the newest records lie.
INSERT OR IGNORE INTO places (place, position) SELECT place, position FROM tail;

-- name: place_newest
-- Writes down where records lie that have no place yet, and of the newest whatever is said.
INSERT OR IGNORE INTO places (place, position) SELECT place, position FROM events
WHERE position > min(
    (SELECT placed FROM positions WHERE id = 1), (SELECT max(position) FROM events) - ?
);

-- name: note_placed
-- Whatever was committed up to a position has its place now.
UPDATE positions SET placed = :position WHERE id = 1 AND placed <> :position;

-- name: put_question
-- Opens a question, or renews what may change of it.
INSERT INTO questions (question_id, run_id, root_id, status, type, title, role,
                       opened_at, deadline, closed_at, body, crc)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (question_id) DO UPDATE
SET status = excluded.status, title = excluded.title, role = excluded.role,
    deadline = excluded.deadline, closed_at = excluded.closed_at, body = excluded.body,
    crc = excluded.crc;

-- name: question_pair
-- What a question is counted under.
SELECT status, type FROM questions WHERE question_id = ?;

-- name: leave_notice
-- Leaves a message for another run, once.
INSERT INTO notices (target_id, source_id, seq, payload) VALUES (?, ?, ?, ?)
ON CONFLICT (target_id, source_id, seq) DO NOTHING;

-- name: hear_notice
-- Removes a notice that its target has taken in.
DELETE FROM notices WHERE target_id = ? AND source_id = ? AND seq = ?;

-- name: save_snapshot
-- Keeps a snapshot that is not ahead of its run, in place of an older or foreign one.
INSERT INTO snapshots (run, version, schema, payload, crc)
SELECT id, :version, :schema, :payload, :crc FROM runs
WHERE run_id = :run_id
  AND (EXISTS (SELECT 1 FROM tail WHERE place = ((runs.id << 32) | :version))
       OR EXISTS (SELECT 1 FROM places WHERE place = ((runs.id << 32) | :version)))
ON CONFLICT (run) DO UPDATE
SET version = excluded.version, schema = excluded.schema, payload = excluded.payload,
    crc = excluded.crc
WHERE excluded.version >= snapshots.version OR excluded.schema <> snapshots.schema;

-- name: store_definition
-- Stores a definition by its digest, once.
INSERT INTO definitions (digest, kind, name, body, stored_at, meta, crc)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (digest) DO NOTHING;

-- name: keep
-- Keeps something under its name, in place of what was there.
INSERT INTO kept (kind, key, body, expires_at, crc) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (kind, key) DO UPDATE
SET body = excluded.body, expires_at = excluded.expires_at, crc = excluded.crc;

-- name: drop_kept
-- Removes what is kept under a name.
DELETE FROM kept WHERE kind = ? AND key = ?;

-- name: kept_until
-- When what is kept under a name expires.
SELECT expires_at FROM kept WHERE kind = ? AND key = ?;

-- name: drop_expired
-- Removes some of what has expired.
DELETE FROM kept WHERE id IN (SELECT id FROM kept WHERE expires_at <= ? LIMIT ?);

-- name: last_audited
-- Where the audit chain ends.
SELECT number, digest FROM audit ORDER BY number DESC LIMIT 1;

-- name: add_audited
-- Adds an entry to the audit chain.
INSERT INTO audit (number, at, who, action, subject, run_id, seen, origin, detail,
                   previous, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: probe
-- Writes something of no consequence, to learn whether a commit succeeds again.
UPDATE probes SET count = count + 1;

-- name: read_events
-- A stretch of one run's records, in order, as the bytes that their checksums are of.
SELECT places.place, at, CAST(type AS BLOB), CAST(payload AS BLOB), crc
FROM places CROSS JOIN events ON events.rowid = places.position
WHERE places.place > :after AND places.place <= :last
UNION ALL
SELECT place, at, CAST(type AS BLOB), CAST(payload AS BLOB), crc FROM tail
WHERE place > :after AND place <= :last
ORDER BY 1;

-- name: run
-- One run's row.
SELECT run_id, kind, name, definition, status, active, wake_at, root_id, parent_id,
       created_at, updated_at, title, summary
FROM runs WHERE run_id = ?;

-- name: runs_newest
-- A page of all runs, newest first.
SELECT run_id, kind, name, definition, status, active, wake_at, root_id, parent_id,
       created_at, updated_at, title, summary, id
FROM runs
WHERE id < :before AND (NOT :roots_only OR parent_id IS NULL)
ORDER BY id DESC LIMIT :limit;

-- name: runs_of_status
-- A page of the runs in one status, newest first.
SELECT run_id, kind, name, definition, status, active, wake_at, root_id, parent_id,
       created_at, updated_at, title, summary, id
FROM runs INDEXED BY runs_status
WHERE status = :status AND id < :before AND (NOT :roots_only OR parent_id IS NULL)
ORDER BY id DESC LIMIT :limit;

-- name: runs_of_kind
-- A page of the runs of one kind, newest first.
SELECT run_id, kind, name, definition, status, active, wake_at, root_id, parent_id,
       created_at, updated_at, title, summary, id
FROM runs INDEXED BY runs_kind
WHERE kind = :kind AND id < :before AND (NOT :roots_only OR parent_id IS NULL)
ORDER BY id DESC LIMIT :limit;

-- name: runs_of_kind_and_status
-- A page of the runs of one kind in one status, newest first.
SELECT run_id, kind, name, definition, status, active, wake_at, root_id, parent_id,
       created_at, updated_at, title, summary, id
FROM runs INDEXED BY runs_kind_status
WHERE kind = :kind AND status = :status AND id < :before
  AND (NOT :roots_only OR parent_id IS NULL)
ORDER BY id DESC LIMIT :limit;

-- name: runs_of_name
-- A page of the runs of one plan or agent, newest first.
SELECT run_id, kind, name, definition, status, active, wake_at, root_id, parent_id,
       created_at, updated_at, title, summary, id
FROM runs INDEXED BY runs_name
WHERE name = :name AND id < :before
  AND (:kind IS NULL OR kind = :kind)
  AND (NOT :roots_only OR parent_id IS NULL)
ORDER BY id DESC LIMIT :limit;

-- name: runs_of_name_and_status
-- A page of the runs of one plan or agent in one status, newest first.
SELECT run_id, kind, name, definition, status, active, wake_at, root_id, parent_id,
       created_at, updated_at, title, summary, id
FROM runs INDEXED BY runs_name_status
WHERE name = :name AND status = :status AND id < :before
  AND (:kind IS NULL OR kind = :kind)
  AND (NOT :roots_only OR parent_id IS NULL)
ORDER BY id DESC LIMIT :limit;

-- name: runs_of_parent
-- A page of one run's children, newest first.
SELECT run_id, kind, name, definition, status, active, wake_at, root_id, parent_id,
       created_at, updated_at, title, summary, id
FROM runs INDEXED BY runs_parent
WHERE parent_id = :parent_id AND id < :before
  AND (:kind IS NULL OR kind = :kind)
  AND (:name IS NULL OR name = :name)
  AND NOT :roots_only
  AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
ORDER BY id DESC LIMIT :limit;

-- name: run_counts
-- How many runs there are of each kind and status.
SELECT kind, status, count(*) FROM runs INDEXED BY runs_kind_status GROUP BY kind, status;

-- name: active_runs
-- Everything that a restart must load, in order of creation.
SELECT run_id FROM runs WHERE active = 1 ORDER BY id;

-- name: last_removed
-- The highest number of a series among runs that are gone.
SELECT last FROM series WHERE name = ?;

-- name: due_runs
-- Runs whose timer has come, the earliest first.
SELECT run_id FROM runs WHERE wake_at IS NOT NULL AND wake_at <= ? ORDER BY wake_at, id LIMIT ?;

-- name: next_wake
-- The earliest timer after a moment.
SELECT min(wake_at) FROM runs WHERE wake_at IS NOT NULL AND wake_at > ?;

-- name: highest_number
-- The last of the root runs whose ids have one length and lie between two others.
SELECT run_id FROM runs
WHERE parent_id IS NULL AND length(run_id) = :length
  AND run_id BETWEEN :lowest AND :highest
  AND substr(run_id, :digits_from) NOT GLOB '*[^0-9]*'
ORDER BY run_id DESC LIMIT 1;

-- name: question
-- One question.
SELECT question_id, run_id, root_id, status, type, title, role, opened_at, deadline,
       closed_at, body, crc
FROM questions WHERE question_id = ?;

-- name: locate_question
-- A question's number, by which lists are ordered.
SELECT id FROM questions WHERE question_id = ?;

-- name: question_counts
-- How many questions there are of each status and type.
SELECT status, type, count(*) FROM questions INDEXED BY questions_status_type
GROUP BY status, type;

-- name: questions_of_all
-- Questions of every status, oldest first.
SELECT question_id, run_id, root_id, status, type, title, role, opened_at, deadline,
       closed_at, body, crc, id
FROM questions
WHERE id > :after
  AND (:role IS NULL OR role = :role)
  AND (:due_before IS NULL OR deadline < :due_before)
ORDER BY id LIMIT :limit;

-- name: questions_of_status
-- The questions in one status, oldest first.
SELECT question_id, run_id, root_id, status, type, title, role, opened_at, deadline,
       closed_at, body, crc, id
FROM questions INDEXED BY questions_status
WHERE status = :status AND id > :after
  AND (:due_before IS NULL OR deadline < :due_before)
ORDER BY id LIMIT :limit;

-- name: questions_for_role
-- The questions in one status that ask one role, oldest first.
SELECT question_id, run_id, root_id, status, type, title, role, opened_at, deadline,
       closed_at, body, crc, id
FROM questions INDEXED BY questions_role
WHERE role = :role AND status = :status AND id > :after
  AND (:due_before IS NULL OR deadline < :due_before)
ORDER BY id LIMIT :limit;

-- name: questions_of_run
-- The questions of one run, oldest first.
SELECT question_id, run_id, root_id, status, type, title, role, opened_at, deadline,
       closed_at, body, crc, id
FROM questions INDEXED BY questions_run
WHERE run_id = :run_id AND id > :after
  AND (:root_id IS NULL OR root_id = :root_id)
  AND (:role IS NULL OR role = :role)
  AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
  AND (:due_before IS NULL OR deadline < :due_before)
ORDER BY id LIMIT :limit;

-- name: questions_of_root
-- The questions of a run and all its descendants, oldest first.
SELECT question_id, run_id, root_id, status, type, title, role, opened_at, deadline,
       closed_at, body, crc, id
FROM questions INDEXED BY questions_root
WHERE root_id = :root_id AND id > :after
  AND (:role IS NULL OR role = :role)
  AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
  AND (:due_before IS NULL OR deadline < :due_before)
ORDER BY id LIMIT :limit;

-- name: notices
-- Everything that has not been heard yet, in order.
SELECT target_id, source_id, seq, payload FROM notices ORDER BY id;

-- name: notices_for
-- What one run has not heard yet, in order.
SELECT target_id, source_id, seq, payload FROM notices WHERE target_id = ? ORDER BY id;

-- name: snapshot
-- A run's snapshot, if this program's schema wrote it.
SELECT snapshots.version, snapshots.schema, CAST(snapshots.payload AS BLOB), snapshots.crc
FROM snapshots JOIN runs ON runs.id = snapshots.run
WHERE runs.run_id = ? AND snapshots.schema = ?;

-- name: definition
-- A definition by its digest.
SELECT digest, kind, name, body, stored_at, meta, crc FROM definitions WHERE digest = ?;

-- name: definitions
-- Everything stored under one name, the newest first.
SELECT digest, kind, name, body, stored_at, meta, crc FROM definitions
WHERE kind = ? AND name = ? ORDER BY stored_at DESC, digest DESC;

-- name: kept
-- What is kept under a name, unless it has expired.
SELECT kind, key, body, expires_at, crc FROM kept
WHERE kind = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?);

-- name: all_kept
-- Everything of one kind that has not expired, in order of the keys.
SELECT kind, key, body, expires_at, crc FROM kept
WHERE kind = ? AND (expires_at IS NULL OR expires_at > ?) ORDER BY key;

-- name: audit
-- A stretch of the audit chain.
SELECT number, at, who, action, subject, run_id, seen, origin, detail, previous, digest
FROM audit WHERE number > ? ORDER BY number LIMIT ?;

-- name: commits
-- The records behind a position, each with its run.
SELECT events.position, runs.run_id, events.place & 0xFFFFFFFF
FROM events CROSS JOIN runs ON runs.id = events.place >> 32
WHERE events.position > :after ORDER BY events.position LIMIT :limit;

-- name: last_commit
-- The newest position that was given, be it that of a record that was removed.
SELECT max(given, coalesce((SELECT max(position) FROM events), 0)) FROM positions
WHERE id = 1;

-- name: placed
-- Up to which position records have their place.
SELECT placed FROM positions WHERE id = 1;

-- name: forgotten
-- Up to which position it is not known what was committed.
SELECT forgotten FROM positions WHERE id = 1;
