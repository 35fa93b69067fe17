"""Doubles that ship with the package: scripted model, manual clock, fault points, journal suite."""
