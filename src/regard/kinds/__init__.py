"""One file = one kind of task, as everybody but its training sees it: what its files look like, which recipe
to begin with, what can be wrong with its rows, what a server answers. The table is closed and greppable.
"""

from regard.kinds.answer import ANSWER
from regard.kinds.classify import CLASSIFY
from regard.kinds.classify_pair import CLASSIFY_PAIR
from regard.kinds.dialogue import DIALOGUE
from regard.kinds.guess import Guess
from regard.kinds.kind import Answer, Kind
from regard.kinds.language_model import LANGUAGE_MODEL
from regard.kinds.multilabel import MULTILABEL
from regard.kinds.pretrain import PRETRAIN
from regard.kinds.relation import RELATION
from regard.kinds.summarize import SUMMARIZE
from regard.kinds.tag import TAG
from regard.kinds.translate import TRANSLATE

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        *(TRANSLATE, SUMMARIZE, DIALOGUE, CLASSIFY, CLASSIFY_PAIR, MULTILABEL, TAG),
        *(LANGUAGE_MODEL, PRETRAIN, RELATION, ANSWER),
    )
}

__all__ = ["KINDS", "Answer", "Guess", "Kind"]
