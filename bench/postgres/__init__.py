"""Holdfast on PostgreSQL beside its peers, on one server that the bench starts for itself.

    python -m bench.setup                     make .venv-bench with the pinned peers
    python -m bench.postgres --quick --json   one round, two minutes
    python -m bench.postgres                  five rounds
    python -m bench.postgres.journal          the journal alone: appends, sealing, batches
    python -m bench.postgres.many             an answer among 1,000,000 runs and 100,000 timers

The server is private, in a temporary directory, with PostgreSQL's defaults: a commit waits for the
disk (`fsync`, `synchronous_commit`). Every system has a database of its own there and takes turns
with the others, round by round; only one of them runs at a time, and raw commits are measured
before each, because the disk is noisy.
"""
