"""Text: tokenizers and their vocabularies, Unicode, tag schemes, safe printing."""
