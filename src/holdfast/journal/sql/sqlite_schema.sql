-- The embedded journal, schema version 1, created in one transaction; what later versions
-- added follows in files of their own.
--
-- `events.place` packs the run's number and the sequence number into one integer
-- (run << 32 | seq): a run's records lie side by side in order, and a record of up
-- to 4 kB stays within its page. In a WITHOUT ROWID table keyed (run, seq) records
-- over 1 kB spill, which measured 3.4 times the bytes and 2.4 times the time.
--
-- A run's version is the sequence number of its last record and stands nowhere else:
-- the common append writes one page instead of two, a sixth less time.
BEGIN IMMEDIATE;

CREATE TABLE runs (
    id         INTEGER PRIMARY KEY,
    run_id     TEXT NOT NULL UNIQUE,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    definition TEXT NOT NULL,
    status     TEXT NOT NULL,
    active     INTEGER NOT NULL,
    wake_at    REAL,
    root_id    TEXT NOT NULL,
    parent_id  TEXT,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    title      TEXT NOT NULL,
    summary    TEXT NOT NULL
);
CREATE INDEX runs_active ON runs (active) WHERE active = 1;
CREATE INDEX runs_wake ON runs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX runs_status ON runs (status);
CREATE INDEX runs_kind ON runs (kind);
CREATE INDEX runs_kind_status ON runs (kind, status);
CREATE INDEX runs_name ON runs (name);
CREATE INDEX runs_parent ON runs (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX runs_roots ON runs (length(run_id), run_id) WHERE parent_id IS NULL;

CREATE TABLE events (
    place   INTEGER PRIMARY KEY,
    at      REAL NOT NULL,
    type    TEXT NOT NULL,
    payload TEXT NOT NULL
);

-- For people with a SQL prompt; Holdfast itself never reads it.
CREATE VIEW history AS
SELECT runs.run_id, events.place & 0xFFFFFFFF AS seq, events.at, events.type, events.payload
FROM events JOIN runs ON runs.id = events.place >> 32;

CREATE TABLE questions (
    id          INTEGER PRIMARY KEY,
    question_id TEXT NOT NULL UNIQUE,
    run_id      TEXT NOT NULL,
    root_id     TEXT NOT NULL,
    status      TEXT NOT NULL,
    type        TEXT NOT NULL,
    title       TEXT NOT NULL,
    role        TEXT,
    opened_at   REAL NOT NULL,
    deadline    REAL,
    closed_at   REAL,
    body        TEXT NOT NULL
);
CREATE INDEX questions_run ON questions (run_id);
CREATE INDEX questions_root ON questions (root_id);
CREATE INDEX questions_status ON questions (status);
CREATE INDEX questions_role ON questions (role, status) WHERE role IS NOT NULL;

CREATE TABLE notices (
    id        INTEGER PRIMARY KEY,
    target_id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    payload   TEXT NOT NULL,
    UNIQUE (target_id, source_id, seq)
);

CREATE TABLE snapshots (
    run     INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    schema  INTEGER NOT NULL,
    payload TEXT NOT NULL
);

CREATE TABLE definitions (
    digest    TEXT PRIMARY KEY,
    kind      TEXT NOT NULL,
    name      TEXT NOT NULL,
    body      TEXT NOT NULL,
    stored_at REAL NOT NULL,
    meta      TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE probes (
    id    INTEGER PRIMARY KEY,
    count INTEGER NOT NULL
);
INSERT INTO probes (id, count) VALUES (1, 0);

PRAGMA application_id = 1215261796;
PRAGMA user_version = 1;
COMMIT;
