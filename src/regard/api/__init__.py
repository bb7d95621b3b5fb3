"""What Python callers use: train and load, embeddings, relations."""
