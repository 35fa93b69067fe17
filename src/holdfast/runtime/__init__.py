"""Actors, timers and dispatch: the only package with tasks, clocks and loops."""
