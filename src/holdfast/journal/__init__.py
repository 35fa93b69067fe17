"""The journal: its port, the memory and SQLite adapters, the codec."""
