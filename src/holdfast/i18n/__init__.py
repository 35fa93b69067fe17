"""Holdfast's own messages in the reader's language."""
