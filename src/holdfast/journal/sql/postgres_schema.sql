-- The PostgreSQL journal, schema version 1. Procrastinate's own tables come before it.
--
-- Text is text, never jsonb, which would change it. Keys sort by code point (COLLATE "C"), as in
-- every other journal. A run's version stands in its row, which no index covers, so that the common
-- append leaves all indexes alone (a heap-only update, for which `fillfactor` leaves room).

CREATE TABLE installation (
    id        integer PRIMARY KEY CHECK (id = 1),
    program   text NOT NULL DEFAULT 'holdfast',
    schema    integer NOT NULL,
    founded   timestamptz NOT NULL DEFAULT clock_timestamp(),
    key_check text
);
INSERT INTO installation (id, schema) VALUES (1, 0);

CREATE TABLE runs (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id         text COLLATE "C" NOT NULL UNIQUE,
    version        integer NOT NULL,
    driver_job     bigint,
    driver_attempt integer,
    kind           text COLLATE "C" NOT NULL,
    name           text COLLATE "C" NOT NULL,
    definition     text COLLATE "C" NOT NULL,
    status         text COLLATE "C" NOT NULL,
    active         boolean NOT NULL,
    wake_at        double precision,
    root_id        text COLLATE "C" NOT NULL,
    parent_id      text COLLATE "C",
    created_at     double precision NOT NULL,
    updated_at     double precision NOT NULL,
    title          text NOT NULL,
    summary        text NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX runs_active ON runs (id) WHERE active;
CREATE INDEX runs_wake ON runs (wake_at, id) WHERE wake_at IS NOT NULL;
CREATE INDEX runs_due ON runs (wake_at) WHERE wake_at IS NOT NULL AND NOT active;
CREATE INDEX runs_status ON runs (status, id);
CREATE INDEX runs_kind ON runs (kind, id);
CREATE INDEX runs_kind_status ON runs (kind, status, id);
CREATE INDEX runs_name ON runs (name, id);
CREATE INDEX runs_name_status ON runs (name, status, id);
CREATE INDEX runs_parent ON runs (parent_id, id) WHERE parent_id IS NOT NULL;
CREATE INDEX runs_roots ON runs (length(run_id), run_id) WHERE parent_id IS NULL;

CREATE TABLE events (
    run     bigint NOT NULL,
    seq     integer NOT NULL,
    at      double precision NOT NULL,
    type    text NOT NULL,
    payload text NOT NULL,
    crc     integer NOT NULL,
    PRIMARY KEY (run, seq)
);

-- For people with a SQL prompt; Holdfast itself never reads it.
CREATE VIEW history AS
SELECT runs.run_id, events.seq, events.at, events.type, events.payload
FROM events JOIN runs ON runs.id = events.run;

CREATE TABLE questions (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    question_id text COLLATE "C" NOT NULL UNIQUE,
    run_id      text COLLATE "C" NOT NULL,
    root_id     text COLLATE "C" NOT NULL,
    status      text COLLATE "C" NOT NULL,
    type        text COLLATE "C" NOT NULL,
    title       text NOT NULL,
    role        text COLLATE "C",
    opened_at   double precision NOT NULL,
    deadline    double precision,
    closed_at   double precision,
    body        text NOT NULL,
    crc         integer NOT NULL
);
CREATE INDEX questions_run ON questions (run_id, id);
CREATE INDEX questions_root ON questions (root_id, id);
CREATE INDEX questions_status ON questions (status, id);
CREATE INDEX questions_role ON questions (role, status, id) WHERE role IS NOT NULL;
CREATE INDEX questions_status_type ON questions (status, type);

CREATE TABLE notices (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    target_id text COLLATE "C" NOT NULL,
    source_id text COLLATE "C" NOT NULL,
    seq       integer NOT NULL,
    payload   text NOT NULL,
    UNIQUE (target_id, source_id, seq)
);

CREATE TABLE snapshots (
    run     bigint PRIMARY KEY,
    version integer NOT NULL,
    schema  integer NOT NULL,
    payload text NOT NULL,
    crc     integer NOT NULL
);

CREATE TABLE definitions (
    digest    text COLLATE "C" PRIMARY KEY,
    kind      text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    body      text NOT NULL,
    stored_at double precision NOT NULL,
    meta      text NOT NULL,
    crc       integer NOT NULL
);
CREATE INDEX definitions_name ON definitions (kind, name, stored_at, digest);

CREATE TABLE kept (
    kind       text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    body       text NOT NULL,
    expires_at double precision,
    crc        integer NOT NULL,
    PRIMARY KEY (kind, key)
);
CREATE INDEX kept_expiry ON kept (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE series (
    name text COLLATE "C" PRIMARY KEY,
    last bigint NOT NULL
) WITH (fillfactor = 20);

-- What was committed and has no place among all commits yet (see postgres_sealing.py): stretches
-- of records, and deeds. `place` is the order within a transaction. Rows leave within a second, so
-- these tables are vacuumed by how many have gone.
CREATE TABLE unsealed (
    xid   xid8 NOT NULL DEFAULT pg_current_xact_id(),
    place integer NOT NULL,
    run   bigint NOT NULL,
    first integer NOT NULL,
    last  integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX unsealed_order ON unsealed (xid);

CREATE TABLE deeds (
    xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    place   integer NOT NULL,
    at      double precision NOT NULL,
    who     text NOT NULL,
    action  text NOT NULL,
    subject text NOT NULL,
    run_id  text NOT NULL,
    seen    text NOT NULL,
    origin  text NOT NULL,
    detail  text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX deeds_order ON deeds (xid);

-- `position` is that of a stretch's last record; `horizon` is below which all is sealed.
CREATE TABLE commits (
    position bigint PRIMARY KEY,
    run      bigint NOT NULL,
    first    integer NOT NULL,
    last     integer NOT NULL
);

CREATE INDEX commits_run ON commits (run);

-- Runs that are gone, and whose records are yet to be: they go a few at a time.
CREATE TABLE removed (
    run bigint PRIMARY KEY
);

CREATE TABLE audit (
    number   bigint PRIMARY KEY,
    at       double precision NOT NULL,
    who      text NOT NULL,
    action   text NOT NULL,
    subject  text NOT NULL,
    run_id   text NOT NULL,
    seen     text NOT NULL,
    origin   text NOT NULL,
    detail   text NOT NULL,
    previous text NOT NULL,
    digest   text NOT NULL
);

CREATE TABLE seal (
    id        integer PRIMARY KEY CHECK (id = 1),
    horizon   xid8 NOT NULL,
    position  bigint NOT NULL,
    forgotten bigint NOT NULL,
    number    bigint NOT NULL,
    digest    text NOT NULL
) WITH (fillfactor = 20);
INSERT INTO seal (id, horizon, position, forgotten, number, digest)
VALUES (1, '0', 0, 0, 0, '');

-- Procrastinate's insert trigger notifies inside the transaction, which serialises all commits: the
-- journal notifies after the commit instead. The history of every job is nothing that we use.
DROP TRIGGER procrastinate_jobs_notify_queue_job_inserted_v1 ON procrastinate_jobs;
DROP TRIGGER procrastinate_trigger_status_events_insert_v1 ON procrastinate_jobs;
DROP TRIGGER procrastinate_trigger_status_events_update_v1 ON procrastinate_jobs;
DROP TRIGGER procrastinate_trigger_scheduled_events_v1 ON procrastinate_jobs;
ALTER TABLE procrastinate_jobs SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- The right to have a call in flight: as many rows as the installation permits, each with the
-- dispatcher's number of the worker that has it.
CREATE TABLE slots (
    number integer PRIMARY KEY,
    worker bigint
) WITH (fillfactor = 20);
