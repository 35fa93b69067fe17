-- From schema version 1 to 2, in one transaction: what is kept by name, who did what,
-- and the order of all commits. A new database passes through here too.
--
-- `commits` has a row only where another run's records begin; `position` is the place
-- of the first of them among all records. While one run goes on, its appends write
-- nothing here: a row for each would add a page to every commit. The first row stands
-- for the beginning, before which nothing was committed.
BEGIN IMMEDIATE;

CREATE TABLE kept (
    id         INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL,
    key        TEXT NOT NULL,
    body       TEXT NOT NULL,
    expires_at REAL,
    UNIQUE (kind, key)
);
CREATE INDEX kept_expiry ON kept (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE audit (
    number   INTEGER PRIMARY KEY,
    at       REAL NOT NULL,
    who      TEXT NOT NULL,
    action   TEXT NOT NULL,
    subject  TEXT NOT NULL,
    run_id   TEXT NOT NULL,
    seen     TEXT NOT NULL,
    origin   TEXT NOT NULL,
    detail   TEXT NOT NULL,
    previous TEXT NOT NULL,
    digest   TEXT NOT NULL
);

CREATE TABLE commits (
    position INTEGER PRIMARY KEY,
    run      INTEGER NOT NULL,
    first    INTEGER NOT NULL
);
INSERT INTO commits (position, run, first) VALUES (0, 0, 0);

CREATE INDEX questions_status_type ON questions (status, type);
CREATE INDEX definitions_name ON definitions (kind, name, stored_at, digest);

PRAGMA user_version = 2;
COMMIT;
