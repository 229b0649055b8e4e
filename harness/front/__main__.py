"""`python -m longreach`."""

from longreach.harness.cli import main

main()
