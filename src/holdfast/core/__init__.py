"""Pure functions: no IO, no clock, no randomness, no logging.

`plan` is the machine, `language` the conditions and templates that plans are written
in, `forms` what people are asked, `source` plans as files, `drawing` plans as pictures.
"""
