"""A first recipe for somebody's data: every setting written out with its meaning, sized to data and machine.

The sizes are where to begin: they worked on corpora of that size, and `regard check` measures what they cost.
"""

from regard.draft.recipe import draft
from regard.kinds.plan import Plan, script

__all__ = ["Plan", "draft", "script"]
