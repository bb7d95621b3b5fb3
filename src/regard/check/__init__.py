"""Findings of `regard check` in data: every row of every split is looked at, and nothing is written."""
