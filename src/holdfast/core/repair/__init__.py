"""What went wrong in a run, and how its plan may be changed."""
