"""What an effect does: tools, models, agents, sandboxed code."""
