"""Plans as files: read from YAML with places, checked, and written as canonical JSON."""
