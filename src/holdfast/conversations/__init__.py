"""Conversations in Python: the engine that decomposes a goal, schedules its tasks and runs them."""
