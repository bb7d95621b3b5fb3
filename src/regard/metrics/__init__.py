"""Scores, thin over well-kept libraries. A tally keeps what each example contributed and can be added."""
