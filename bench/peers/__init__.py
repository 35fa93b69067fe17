"""One module per peer; each runs in `.venv-bench` and answers the same requests as `bench.ours`."""
