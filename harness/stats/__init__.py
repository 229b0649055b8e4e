"""Numbers from records: intervals, cells, curves, effective lengths, scans, gates, comparisons. Pure."""
