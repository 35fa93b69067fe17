-- name: make_slots
-- There are as many slots as calls may be in flight.
INSERT INTO slots (number) SELECT generate_series(1, $1) ON CONFLICT (number) DO NOTHING;

-- name: take_slots
-- Gives a worker slots that are free, or that a worker held which is gone. The holder is looked up
-- in a scalar subquery, which is asked again when another has taken the slot meanwhile; a join would
-- not be. Just after the server has started no worker has been heard of, and none counts as gone.
WITH found AS (
    SELECT number FROM slots
    WHERE number <= $3
      AND (worker IS NULL
           OR (pg_postmaster_start_time() < now() - make_interval(secs => $4 * 1.25)
               AND coalesce((SELECT last_heartbeat FROM procrastinate_workers AS holder
                             WHERE holder.id = slots.worker), '-infinity')
                   < now() - make_interval(secs => $4)))
    ORDER BY number LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE slots SET worker = $1 FROM found WHERE slots.number = found.number RETURNING slots.number;

-- name: return_slots
-- Frees so many slots of a worker.
UPDATE slots SET worker = NULL WHERE number IN (
    SELECT number FROM slots WHERE worker = $1 ORDER BY number DESC LIMIT $2 FOR UPDATE
);

-- name: count_slots
-- How many slots a worker holds, and how many workers there are.
SELECT (SELECT count(*) FROM slots WHERE worker = $1),
       (SELECT count(*) FROM procrastinate_workers
        WHERE last_heartbeat >= now() - make_interval(secs => $2));
