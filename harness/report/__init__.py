"""What a reader sees: the card in three forms, its figures, the notebook, blocks in other people's files."""
