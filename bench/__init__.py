"""Holdfast beside its peers: the same work, on the same disk, in the same run.

    python -m bench.setup            make .venv-bench with the pinned peers
    python -m bench --quick --json   the main figures in five rounds, three minutes at most
    python -m bench                  everything; bench/results gets report.md, report.json, plot.svg
    python -m bench.budget           what a step costs, counted: calls, statements, bytes, …

Each system has a process of its own (`trial.py` is what happens inside), the peers with the
interpreter of `.venv-bench`; they take turns, and only one of them works at a time. Every database
is SQLite in WAL mode with `synchronous=FULL`, in a fresh directory on the project's disk, and every
step is on disk before the next one starts. Before each turn raw commits are measured, because the
disk is the limit of all of them and it is noisy.
"""
