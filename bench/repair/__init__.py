"""The repair bench: what becomes of runs that fail, under planners from today's to a hostile one.

    python -m bench.repair --planner today|rules|scripted|weak|hostile|real --seed 1 --json

Forty scenarios of failing plans and twelve prompts for plans, each with an oracle, are played on a
real application with a SQLite home against the mock office over real HTTP. Time is the manual
clock's; the office's clock is put on with it. What counts is what the office wrote down.

    scenario    what a scenario and its oracle say           scenarios/, prompts   the data
    person      who answers: as the oracle says, or yes to everything
    playing     an application and an office in one time     trial    one of them, from start to end
    harm        what should never have happened              judging  whether it came out right
    planners    which planner is on trial                    spending what was asked of models
    report      what is told of all trials
"""
