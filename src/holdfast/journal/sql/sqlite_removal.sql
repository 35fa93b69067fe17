-- name: run
-- What decides whether a run may go, and where its rows are.
SELECT id, parent_id, kind, status, active, wake_at FROM runs WHERE run_id = ?;

-- name: children
-- The runs that work for a run.
SELECT run_id FROM runs INDEXED BY runs_parent WHERE parent_id = ?;

-- name: is_asking
-- Whether a tree of runs asks something.
SELECT 1 FROM questions INDEXED BY questions_root WHERE root_id = ? AND status = 'open' LIMIT 1;

-- name: is_told
-- Whether a run has yet to hear something, or has left something to be heard.
SELECT 1 FROM notices WHERE target_id = :run_id OR source_id = :run_id LIMIT 1;

-- name: questions
-- How many questions of a tree there are of each status and type.
SELECT status, type, count(*) FROM questions INDEXED BY questions_root
WHERE root_id = ? GROUP BY status, type;

-- name: remove_questions
-- Removes the questions of a tree.
DELETE FROM questions WHERE root_id = ?;

-- name: remove_snapshot
-- Removes a run's snapshot.
DELETE FROM snapshots WHERE run = ?;

-- name: remove_run
-- Removes a run's row.
DELETE FROM runs WHERE id = ?;

-- name: note_removed
-- A run's records are to go.
INSERT INTO removed (run) VALUES (?);

-- name: note_number
-- The number of a run that is gone is not given again.
INSERT INTO series (name, last) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET last = excluded.last WHERE excluded.last > series.last;

-- name: first_removed
-- A run whose records are to go.
SELECT run FROM removed ORDER BY run LIMIT 1;

-- name: remove_placed
-- Removes some of a run's records.
DELETE FROM events WHERE position IN (
    SELECT position FROM places
    WHERE place BETWEEN (:run << 32) AND ((:run << 32) | 0xFFFFFFFF) LIMIT :limit
);

-- name: remove_tail
-- Removes those that have no place yet.
DELETE FROM events WHERE position IN (
    SELECT position FROM tail WHERE place BETWEEN (:run << 32) AND ((:run << 32) | 0xFFFFFFFF)
);

-- name: end_removed
-- All records of a run are gone.
DELETE FROM removed WHERE run = ?;
