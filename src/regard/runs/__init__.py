"""Runs: from a recipe to a run folder, and everything in such a folder."""
