"""Repairs of a run's plan: what is known of a failure, what may help, and if it may be done."""
