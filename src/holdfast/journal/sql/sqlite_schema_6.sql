-- From schema version 5 to 6, in one transaction: places are written for many records at once.
--
-- `places` finds a run's records, as the index `events_place` did, which dirtied a second page
-- with every commit. Records behind `positions.placed` have no row there yet: they are `tail`,
-- a few hundred at most, and are looked through.
BEGIN IMMEDIATE;

CREATE TABLE places (
    place    INTEGER PRIMARY KEY,
    position INTEGER NOT NULL
);
INSERT INTO places (place, position) SELECT place, position FROM events ORDER BY place;
DROP INDEX events_place;

ALTER TABLE positions ADD COLUMN placed INTEGER NOT NULL DEFAULT 0;
UPDATE positions SET placed = coalesce((SELECT max(position) FROM events), 0);

CREATE VIEW tail AS
SELECT * FROM events WHERE position > (SELECT placed FROM positions WHERE id = 1);
CREATE TRIGGER forget_place AFTER DELETE ON events
BEGIN
    DELETE FROM places WHERE place = OLD.place AND position = OLD.position;
END;

PRAGMA user_version = 6;
COMMIT;
