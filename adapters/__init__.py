"""Everything that knows another library or server: models and tokenizers in, foreign results in."""
