"""What `regard check` finds in data: every row of every split is looked at, and nothing is written."""
