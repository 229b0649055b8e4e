"""GraphWalks: parents of a node and nodes at a distance, in a list of edges."""
