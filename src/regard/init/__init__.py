"""What `regard init` recognises in files, and the first recipe it drafts."""
