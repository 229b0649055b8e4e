"""The tasks: making samples, choosing a scorer, citing sources. Found through `TASKS` in each module."""
