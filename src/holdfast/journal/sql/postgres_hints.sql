-- name: tell
-- Sends hints to all that listen, and waits for no disk.
SELECT set_config('synchronous_commit', 'off', true), pg_notify('holdfast', hint)
FROM unnest($1::text[]) AS given (hint);

-- name: notify_workers
-- Tells workers that a job waits, as Procrastinate's own trigger would.
SELECT set_config('synchronous_commit', 'off', true),
       pg_notify('procrastinate_queue_v1#drive', $1::text);

-- name: listen
-- Hears hints from now on.
LISTEN holdfast;

-- name: look
-- Whether the connection is still there.
SELECT 1;
