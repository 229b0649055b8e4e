"""A task and a model that live outside longreach."""
