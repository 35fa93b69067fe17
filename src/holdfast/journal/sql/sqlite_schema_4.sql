-- From schema version 3 to 4, in one transaction: a checksum for every record and snapshot.
--
-- Records from before have none and are taken as they are. Snapshots from before are let go:
-- they are a cache, and the journal has everything.
BEGIN IMMEDIATE;

ALTER TABLE events ADD COLUMN crc INTEGER;

ALTER TABLE snapshots ADD COLUMN crc INTEGER;
DELETE FROM snapshots;

PRAGMA user_version = 4;
COMMIT;
