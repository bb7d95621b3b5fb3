"""Kinds of data: one file = one kind of column, torch-free."""
