"""The read model: what surfaces (server, console, CLI, streams) know of runs.

`records` has the records: `RunLine`, `RunView`, `InteractionView`, `TimelineEntry`, and `chat` has
`ChatEntry`. One fold per machine makes them: `folds` of a run's state, `timeline`, `chat` and
`attempts` of its events. `reader.RunReader` finds them; `wire` writes and reads them as JSON.
Surfaces import these, `model` (but no event classes) and the public API; nothing of `core` or
`journal`.

What is held per run, and so what a surface pays for:

* A list reads rows. A `RunLine` is one row of the projection; no event is read, no state is held.
* `RunReader.run` folds the run's newest state, which the engine holds for active runs and else
  reads from its snapshot and the records after that. Without `parts` the view has a fixed size;
  with them it has the tasks and steps of a plan, the messages of a session or the tasks of a
  conversation, once each. Nothing of a view is held: it is made again for each reader. Of a run
  of more than `reader.LARGE` events or tasks views, graphs and dry runs are made beside the event
  loop (`RunVersion.beside`).
* A page of a timeline reads its records and `timeline.FURTHER_BACK` before them; a chat its last
  `chat.RECORDS`; the attempts of a step read the run's records once.
* A run as it was at an event is folded from the nearest kept state: one of every `past.STRIDE`
  events, for the `past.MOST_RUNS` runs that were looked at last.
* Questions of a run tree are read in pages of `port.QUESTIONS_PAGE`, as many as there are.
"""
