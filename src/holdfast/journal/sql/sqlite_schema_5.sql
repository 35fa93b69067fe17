-- From schema version 4 to 5, in one transaction: records lie in the order of their commits.
--
-- A batch of many runs' records goes to the end of one table; clustered by run it dirtied a page
-- for each of them. `events_place` finds a run's records. The order of all commits is that of
-- `position`, and needs no table of its own. Positions that were given stay; records whose
-- position is not known come before all others.
--
-- `positions.given` is written only where the newest record is removed: no position is given
-- twice. Up to `positions.forgotten` the schemas before have pruned what was committed.
BEGIN IMMEDIATE;

CREATE TABLE positions (
    id        INTEGER PRIMARY KEY,
    given     INTEGER NOT NULL,
    forgotten INTEGER NOT NULL
);
INSERT INTO positions (id, given, forgotten)
SELECT 1, 0, coalesce(min(position) - 1, 0) FROM commits WHERE run > 0;

CREATE TABLE records (
    position INTEGER PRIMARY KEY,
    place INTEGER NOT NULL,
    at REAL NOT NULL,
    type TEXT NOT NULL,
    payload TEXT NOT NULL,
    crc INTEGER
);
CREATE UNIQUE INDEX events_place ON records (place);
CREATE INDEX commits_run ON commits (run, first);
INSERT OR IGNORE INTO records (position, place, at, type, payload, crc)
SELECT commits.position + (place & 0xFFFFFFFF) - commits.first, place, at, type, payload, crc
FROM events CROSS JOIN commits ON commits.position = (
    SELECT position FROM commits
    WHERE run = place >> 32 AND first <= place & 0xFFFFFFFF
    ORDER BY first DESC LIMIT 1
)
ORDER BY 1;
INSERT INTO records (position, place, at, type, payload, crc)
SELECT place - (1 << 62), place, at, type, payload, crc
FROM events WHERE place NOT IN (SELECT place FROM records);

DROP VIEW history;
DROP TABLE commits;
DROP TABLE events;
ALTER TABLE records RENAME TO events;
CREATE VIEW history AS
SELECT runs.run_id, events.place & 0xFFFFFFFF AS seq, events.at, events.type, events.payload
FROM events JOIN runs ON runs.id = events.place >> 32;
CREATE TRIGGER keep_position BEFORE DELETE ON events
WHEN OLD.position = (SELECT max(position) FROM events)
BEGIN
    UPDATE positions SET given = OLD.position WHERE given < OLD.position;
END;

PRAGMA user_version = 5;
COMMIT;
