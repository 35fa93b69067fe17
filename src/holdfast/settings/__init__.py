"""Settings: one table of all there are, and where a value may come from.

A flag goes before the environment, the environment before the configuration file, the file before
the default. `table` declares the settings, `kinds` reads their values, `file` reads
`holdfast.toml`, `sources` puts them together. The documentation's table, the options of `serve` and
`holdfast settings` are made from the same records.
"""
