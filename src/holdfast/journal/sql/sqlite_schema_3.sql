-- From schema version 2 to 3, in one transaction: the runs of one plan in one status, however
-- many others the plan has.
BEGIN IMMEDIATE;

CREATE INDEX runs_name_status ON runs (name, status);

PRAGMA user_version = 3;
COMMIT;
