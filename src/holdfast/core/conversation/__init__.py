"""The machine of a conversation: a goal, decomposed into tasks that are scheduled and executed."""
