"""Stories: a run's events in plain words, whichever kind of run it is.

`storyteller(state)`, in the module of that name, gives a `Teller`; fed with the run's records in
order it says of each who did what. Terminals and pages show the same story.
"""
