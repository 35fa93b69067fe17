-- name: lock_runs
-- What decides whether runs may go; it stays so until the end of the transaction.
SELECT run_id, id, version, parent_id, status, active, wake_at FROM runs
WHERE run_id = ANY($1::text[]) ORDER BY run_id FOR UPDATE;

-- name: children
-- The runs that work for some runs.
SELECT parent_id, run_id FROM runs WHERE parent_id = ANY($1::text[]);

-- name: asking
-- Which trees of runs ask something.
SELECT DISTINCT root_id FROM questions WHERE root_id = ANY($1::text[]) AND status = 'open';

-- name: told
-- Which runs have yet to hear something, or have left something to be heard.
SELECT target_id, source_id FROM notices
WHERE target_id = ANY($1::text[]) OR source_id = ANY($1::text[]);

-- name: remove_questions
-- Removes the questions of some trees.
DELETE FROM questions WHERE root_id = ANY($1::text[]);

-- name: remove_snapshots
-- Removes the snapshots of some runs.
DELETE FROM snapshots WHERE run = ANY($1::bigint[]);

-- name: remove_runs
-- Removes the rows of some runs.
DELETE FROM runs WHERE id = ANY($1::bigint[]);

-- name: note_removed
-- The records of some runs are to go.
INSERT INTO removed (run) SELECT * FROM unnest($1::bigint[]);

-- name: note_number
-- The number of a run that is gone is not given again.
INSERT INTO series AS held (name, last) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET last = greatest(held.last, excluded.last);

-- name: doomed
-- Some runs whose records are to go, and that no other process is at.
SELECT run FROM removed ORDER BY run LIMIT $1 FOR UPDATE SKIP LOCKED;

-- name: remove_events
-- Removes so many records of some runs.
DELETE FROM events WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM events WHERE run = ANY($1::bigint[]) LIMIT $2
));

-- name: remove_commits
-- Removes the places of some runs' records among all commits.
DELETE FROM commits WHERE run = ANY($1::bigint[]);

-- name: end_removed
-- All records of some runs are gone.
DELETE FROM removed WHERE run = ANY($1::bigint[]);

-- name: is_more
-- Whether there are runs whose records are to go.
SELECT EXISTS (SELECT FROM removed);
