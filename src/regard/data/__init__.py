"""From files to batches: sources, tokenisers, batching."""
