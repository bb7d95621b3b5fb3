"""Files → rows, lazily: one module per format."""
