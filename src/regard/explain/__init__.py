"""Explanations: replay a prediction with taps on, measure how faithful the attention maps are, draw them."""
