-- name: finish_job
-- Removes a job that is held as this attempt at it.
DELETE FROM procrastinate_jobs
WHERE id = %(id)s AND status = 'doing' AND attempts = %(attempts)s;

-- name: return_job
-- Has a job that is held as this attempt at it done by another worker.
UPDATE procrastinate_jobs
SET status = 'todo', attempts = attempts + 1, worker_id = NULL,
    scheduled_at = now() + make_interval(secs => %(delay)s)
WHERE id = %(id)s AND status = 'doing' AND attempts = %(attempts)s;

-- name: held_jobs
-- What a worker holds.
SELECT id, attempts FROM procrastinate_jobs
WHERE worker_id = %(worker_id)s AND status = 'doing';

-- name: server_up_for
-- For how many seconds the database server has been there.
SELECT extract(epoch FROM now() - pg_postmaster_start_time())::float8 AS seconds;

-- name: clock
-- What time it is there.
SELECT extract(epoch FROM clock_timestamp())::float8 AS seconds;

-- name: refuse_job
-- Notes in a job that this worker cannot do it; whether there are others that have not said so.
UPDATE procrastinate_jobs
SET args = jsonb_set(args, '{refused}', coalesce(args -> 'refused', '{}')
                     || jsonb_build_object(%(worker_id)s::bigint, true))
WHERE id = %(id)s AND status = 'doing' AND attempts = %(attempts)s
RETURNING EXISTS (
    SELECT FROM procrastinate_workers AS other
    WHERE other.last_heartbeat >= now() - make_interval(secs => %(seconds)s)
      AND NOT jsonb_exists(procrastinate_jobs.args -> 'refused', other.id::text)
) AS others;
