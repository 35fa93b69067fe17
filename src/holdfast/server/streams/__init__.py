"""Server-sent events: one run, a conversation, the feed of all runs."""
