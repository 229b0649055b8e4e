"""Questions that share no word with what answers them (after NoLiMa): our own needles, and a loader of the official ones."""
