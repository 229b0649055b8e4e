"""Loaders of LongBench v2, LongBench v1 with LongBench-E, and L-Eval: published data, never shipped."""
