-- name: state
-- How far all is sealed, and whether there is more (behind the horizon: not among dead rows).
SELECT position, forgotten,
       horizon > pg_snapshot_xmax(pg_current_snapshot())
       OR coalesce((SELECT true FROM unsealed WHERE xid >= horizon ORDER BY xid LIMIT 1), false)
       OR coalesce((SELECT true FROM deeds WHERE xid >= horizon ORDER BY xid LIMIT 1), false)
FROM seal WHERE id = 1;

-- name: lock
-- Takes the right to seal, once it is free.
SELECT horizon, position, number, digest FROM seal WHERE id = 1 FOR UPDATE;

-- name: try_lock
-- Takes the right to seal, if it is free.
SELECT horizon, position, number, digest FROM seal WHERE id = 1 FOR UPDATE SKIP LOCKED;

-- name: horizon
-- The next transaction when this began, and then those that write: of backends, then prepared ones.
WITH begun AS MATERIALIZED (
    SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next
), running AS MATERIALIZED (
    SELECT array_agg(backend_xid::text::bigint) AS xids, current_database() AS here
    FROM pg_stat_activity
    WHERE datname = current_database() AND usesysid IS NOT NULL AND backend_xid IS NOT NULL
      AND pid <> pg_backend_pid()
)
SELECT begun.next, running.xids, (
    SELECT array_agg(transaction::text::bigint) FROM pg_prepared_xacts
    WHERE database = running.here
)
FROM begun CROSS JOIN running;

-- name: place_stretches
-- Gives the stretches below a horizon their positions; the last one, and whether more is there.
WITH taken AS (
    DELETE FROM unsealed
    WHERE xid BETWEEN $1::text::xid8 AND '18446744073709551615'
      AND (xid < $2::text::xid8 OR xmin <> xid::xid)
    RETURNING xmin = xid::xid AS ours, xid, place, run, first, last
), placed AS (
    INSERT INTO commits (position, run, first, last)
    SELECT $3::bigint + sum(last - first + 1) OVER (ORDER BY ours, xid, place), run, first, last
    FROM taken
    RETURNING position
)
SELECT coalesce((SELECT max(position) FROM placed), $3::bigint),
       coalesce((
           SELECT true FROM unsealed WHERE xid >= $2::text::xid8 AND xmin = xid::xid
           ORDER BY xid LIMIT 1
       ), false);

-- name: take_deeds
-- Takes the deeds below a horizon, in no order.
DELETE FROM deeds
WHERE xid BETWEEN $1::text::xid8 AND '18446744073709551615'
  AND (xid < $2::text::xid8 OR xmin <> xid::xid)
RETURNING xmin = xid::xid, xid::text::bigint, place, at, who, action, subject, run_id, seen,
          origin, detail;

-- name: has_deeds
-- Whether there are deeds that are not sealed.
SELECT coalesce(
    (SELECT true FROM deeds WHERE xid >= $1::text::xid8 ORDER BY xid LIMIT 1), false
);

-- name: add_entries
-- Adds entries to the audit chain.
INSERT INTO audit (number, at, who, action, subject, run_id, seen, origin, detail, previous,
                   digest)
SELECT * FROM unnest($1::bigint[], $2::double precision[], $3::text[], $4::text[], $5::text[],
                     $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[]);

-- name: note
-- Writes down how far all is sealed, and waits for no disk.
WITH hurried AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
UPDATE seal SET horizon = $1::text::xid8, position = $2, number = $3, digest = $4
FROM hurried WHERE id = 1;
