"""The demo: sample plans and the mock office."""
