"""What only text needs: tokenizers and their vocabularies, Unicode, tag schemes, safe printing."""
