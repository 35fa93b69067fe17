"""The ReAct machine: a model thinks, tools act, and what they return is observed."""
