"""Recognition of files by `regard init`, and the first recipe it drafts."""
