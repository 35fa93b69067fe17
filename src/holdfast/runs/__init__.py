"""Runs in Python: a handle per kind of run."""
