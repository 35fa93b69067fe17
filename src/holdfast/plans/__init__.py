"""Plans in Python: the module that starts them, the planner that retries them."""
