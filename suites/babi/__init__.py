"""BABILong and tasks of its kind: small stories whose sentences are scattered over a long text."""
