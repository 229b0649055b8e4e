"""From a battery and flags to stored records: plan, schedule, ask, store, resume."""
