-- name: lock
-- The runs that are to go, which nobody moves from now on.
SELECT id, run_id, version, status, active, wake_at, parent_id FROM runs
WHERE run_id = ANY($1::text[]) ORDER BY id FOR UPDATE;

-- name: parents
-- Runs below these that are not among them, by whom they work for.
SELECT parent_id FROM runs
WHERE parent_id = ANY($1::text[]) AND run_id <> ALL($1::text[]);

-- name: asking
-- Trees that ask something.
SELECT DISTINCT root_id FROM questions WHERE root_id = ANY($1::text[]) AND status = 'open';

-- name: told
-- Runs that have yet to hear something, or have left something to be heard.
SELECT target_id FROM notices WHERE target_id = ANY($1::text[])
UNION SELECT source_id FROM notices WHERE source_id = ANY($1::text[]);

-- name: remove_events
-- Removes all records of runs.
DELETE FROM events WHERE run = ANY($1::bigint[]);

-- name: remove_snapshots
-- Removes their snapshots.
DELETE FROM snapshots WHERE run = ANY($1::bigint[]);

-- name: remove_questions
-- Removes the questions of whole trees.
DELETE FROM questions WHERE root_id = ANY($1::text[]);

-- name: remove_runs
-- Removes the rows of runs.
DELETE FROM runs WHERE id = ANY($1::bigint[]);

-- name: note_numbers
-- The numbers of runs that are gone are not given again.
INSERT INTO series (name, last) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (name) DO UPDATE SET last = excluded.last WHERE excluded.last > series.last;
