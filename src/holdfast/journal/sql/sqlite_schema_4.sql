-- From schema version 3 to 4, in one transaction: checksums.
--
-- Records from before have none and are taken as they are: `runs.crc_after` says how many of a
-- run's first ones that are. Snapshots from before are let go: they are a cache, and the journal
-- has everything. Rows can change, and get theirs before the transaction, which is left open
-- here, is committed.
BEGIN IMMEDIATE;

ALTER TABLE events ADD COLUMN crc INTEGER;
ALTER TABLE runs ADD COLUMN crc_after INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET crc_after = coalesce((
    SELECT place & 0xFFFFFFFF FROM events
    WHERE place BETWEEN (runs.id << 32) AND ((runs.id << 32) | 0xFFFFFFFF)
    ORDER BY place DESC LIMIT 1
), 0);

ALTER TABLE snapshots ADD COLUMN crc INTEGER;
DELETE FROM snapshots;

ALTER TABLE questions ADD COLUMN crc INTEGER;
ALTER TABLE kept ADD COLUMN crc INTEGER;
ALTER TABLE definitions ADD COLUMN crc INTEGER;

PRAGMA user_version = 4;
