"""MRCR: one of several replies to the same request is wanted back, word for word."""
