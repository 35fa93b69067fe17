-- name: questions
-- The questions of a database without checksums, text as bytes, after their keys.
SELECT id, CAST(question_id AS BLOB), CAST(run_id AS BLOB), CAST(root_id AS BLOB),
       CAST(status AS BLOB), CAST(type AS BLOB), CAST(title AS BLOB), CAST(role AS BLOB),
       opened_at, deadline, closed_at, CAST(body AS BLOB)
FROM questions;

-- name: check_questions
-- Gives a question its checksum.
UPDATE questions SET crc = ? WHERE id = ?;

-- name: kept
-- What is kept in a database without checksums, likewise.
SELECT id, CAST(kind AS BLOB), CAST(key AS BLOB), CAST(body AS BLOB), expires_at FROM kept;

-- name: check_kept
-- Gives something that is kept its checksum.
UPDATE kept SET crc = ? WHERE id = ?;

-- name: definitions
-- The definitions of a database without checksums, likewise.
SELECT digest, CAST(digest AS BLOB), CAST(kind AS BLOB), CAST(name AS BLOB),
       CAST(body AS BLOB), stored_at, CAST(meta AS BLOB)
FROM definitions;

-- name: check_definitions
-- Gives a definition its checksum.
UPDATE definitions SET crc = ? WHERE digest = ?;
