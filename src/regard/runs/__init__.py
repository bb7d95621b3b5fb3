"""From a recipe to a run folder, and what such a folder holds."""
