"""The plan machine: one command in, one decision out. Start with `tables`."""
