"""Looking inside: replay a prediction with taps on, measure how far the picture may be trusted, draw it."""
