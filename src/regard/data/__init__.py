"""Examples: encoded and cached arrays, layouts, splits, batching."""
