"""Many trainings of one recipe: with other settings, other seeds, other folds; and all runs on one board."""
