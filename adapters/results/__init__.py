"""Results of other tools, one module a format. Found through the entry points `longreach.imports`."""
