-- name: lock_schema
-- One migration at a time, until the end of the transaction.
SELECT pg_advisory_xact_lock(5213690714);

-- name: encoding
-- How the database keeps text.
SELECT current_setting('server_encoding');

-- name: clock
-- What time it is there.
SELECT extract(epoch FROM clock_timestamp())::double precision;

-- name: program
-- Whose table `installation` is, if there is one, and whether a copy into it is not finished.
SELECT CASE
    WHEN to_regclass('installation') IS NULL THEN NULL
    WHEN EXISTS (
        SELECT FROM pg_attribute
        WHERE attrelid = to_regclass('installation') AND attname = 'key_check'
    ) THEN 'holdfast'
    ELSE 'another'
END, to_regclass('copying') IS NOT NULL;

-- name: schema
-- Which schema is there.
SELECT schema FROM installation WHERE id = 1;

-- name: note_schema
-- Writes down which schema is there now.
UPDATE installation SET schema = $1 WHERE id = 1;

-- name: tables
-- How many tables there are where ours belong, but for those of extensions.
SELECT count(*) FROM pg_class
WHERE relkind IN ('r', 'p') AND relnamespace = to_regnamespace(current_schema()::text)
  AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e');

-- name: elsewhere
-- In which schemas that we do not look into an installation is.
SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relname = 'installation' AND relkind = 'r'
  AND nspname <> ALL (SELECT unnest(current_schemas(true)))
  AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'key_check')
ORDER BY nspname;

-- name: note_key
-- Remembers which key the database was begun with, once.
UPDATE installation SET key_check = $1 WHERE id = 1 AND key_check IS NULL;

-- name: key
-- Which key the database was begun with.
SELECT key_check FROM installation WHERE id = 1;
