"""The read model: what screens, streams and the command line show of runs."""
