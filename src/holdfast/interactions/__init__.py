"""Interactions in Python: the service that takes answers, and handlers of custom options."""
