"""Agents in Python: sessions, the hub that follows and answers them, the strategy of the seed."""
