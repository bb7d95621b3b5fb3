"""The Python interface: train and load, embeddings, relations."""
