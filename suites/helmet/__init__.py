"""Look-ups in the form of HELMET and of Lost in the Middle: key-value pairs, documents, many-shot labels."""
