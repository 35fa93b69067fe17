"""Interactions: what people are asked, how it travels, and what their answers mean."""
