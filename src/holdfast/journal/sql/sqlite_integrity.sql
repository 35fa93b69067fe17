-- name: count_runs
-- How many runs there are to read.
SELECT count(*) FROM runs;

-- name: runs
-- Every run, in order of creation.
SELECT id, run_id, definition, summary, crc_after FROM runs ORDER BY id;

-- name: has_definition
-- Whether a definition is stored.
SELECT 1 FROM definitions WHERE digest = CAST(? AS TEXT);

-- name: events
-- One run's records with their checksums.
SELECT places.place, at, CAST(type AS BLOB), CAST(payload AS BLOB), crc
FROM places CROSS JOIN events ON events.rowid = places.position
WHERE places.place > :after AND places.place <= :last
UNION ALL
SELECT place, at, CAST(type AS BLOB), CAST(payload AS BLOB), crc FROM tail
WHERE place > :after AND place <= :last
ORDER BY 1;

-- name: orphans
-- Records whose run is not there.
SELECT place >> 32, count(*) FROM events
WHERE place >> 32 NOT IN (SELECT id FROM runs) GROUP BY place >> 32;

-- name: records_left
-- Runs that are removed, and whose records are yet to go.
SELECT run FROM removed;

-- name: definitions
-- Every plan and agent that was ever stored.
SELECT digest, kind, name, CAST(body AS BLOB), stored_at, meta, crc FROM definitions;

-- name: questions
-- Every question.
SELECT question_id, run_id, root_id, status, type, title, role, opened_at, deadline,
       closed_at, body, crc
FROM questions;

-- name: notices
-- Every notice that was not heard.
SELECT target_id, payload FROM notices;

-- name: kept
-- Everything that is kept by name.
SELECT kind, key, body, expires_at, crc FROM kept;

-- name: snapshots
-- Every snapshot.
SELECT runs.run_id, version, schema, CAST(payload AS BLOB), crc
FROM snapshots JOIN runs ON runs.id = snapshots.run;

-- name: audit
-- The audit chain.
SELECT number, at, who, action, subject, run_id, seen, origin, detail, previous, digest
FROM audit ORDER BY number;

-- name: unordered
-- Records that were committed before the one that stands before them in their run.
SELECT position, runs.run_id, place & 0xFFFFFFFF FROM (
    SELECT position, place, lag(position) OVER (PARTITION BY place >> 32 ORDER BY place) AS before
    FROM events
) JOIN runs ON runs.id = place >> 32
WHERE position < before;

-- name: misplaced
-- Records that are not where they are looked for.
SELECT runs.run_id, place & 0xFFFFFFFF FROM events JOIN runs ON runs.id = place >> 32
WHERE position <= (SELECT placed FROM positions WHERE id = 1) AND NOT EXISTS (
    SELECT 1 FROM places
    WHERE places.place = events.place AND places.position = events.position
);
