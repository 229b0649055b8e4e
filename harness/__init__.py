"""The machinery: types, plan, scheduler, store, estimates, card and command line. Names no suite and no vendor."""
