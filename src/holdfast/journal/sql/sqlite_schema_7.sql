-- From schema version 6 to 7, in one transaction: runs can be removed.
--
-- `removed` are runs that are gone, and whose records are yet to be: they go a few at a time. No
-- number of a run is given twice (`positions.run`), nor is one in an id (`series`).
BEGIN IMMEDIATE;

CREATE TABLE removed (
    run INTEGER PRIMARY KEY
);

ALTER TABLE positions ADD COLUMN run INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER keep_number BEFORE DELETE ON runs
WHEN OLD.id = (SELECT max(id) FROM runs)
BEGIN
    UPDATE positions SET run = OLD.id WHERE run < OLD.id;
END;

CREATE TABLE series (
    name TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) WITHOUT ROWID;

PRAGMA user_version = 7;
COMMIT;
