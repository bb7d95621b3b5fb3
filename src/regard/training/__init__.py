"""The training loop (a generator of events), checkpoints, ranks and sinks; it knows tasks as a protocol."""
