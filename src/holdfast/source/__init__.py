"""Plans as files: read from YAML with locations, checked, and written as canonical JSON."""
