"""What tasks that answer with a text have in common: they search, and can be heard while they do."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

from torch import nn

from regard.decode import NOBODY, DecodeConfig, Hypothesis, Listener, Tree, untold
from regard.errors import RecipeError
from regard.tasks.task import ROWS_TOGETHER, Task, Tell
from regard.tasks.writer import Writer


class Writing(Task):
    searches: ClassVar[bool] = True
    writer: Writer

    @property
    @abstractmethod
    def decode(self) -> DecodeConfig:
        """How it searches."""

    @property
    def rows_together(self) -> int:
        return 1 if self.decode.batch_invariant else ROWS_TOGETHER

    def checked(self) -> Self:
        """Itself, if answers can keep what the recipe asks of them."""
        self.writer.refuse_unkeepable(self.decode)
        return self

    @abstractmethod
    def search(
        self, model: nn.Module, batch: Any, decode: DecodeConfig, listener: Listener = NOBODY
    ) -> list[list[Hypothesis]]:
        """What is found for each example, best first."""

    @abstractmethod
    def text_of(self, example: Any, ids: Sequence[int]) -> str:
        """What the answer to an example says."""

    @abstractmethod
    def told(self, example: Any, found: Sequence[Hypothesis]) -> Any:
        """What was found, best first, as the answer to the example."""

    def predict(self, model: nn.Module, batch: Any, tell: Tell = untold) -> list[Any]:
        examples = batch.examples
        answers: dict[int, Any] = {}

        def ended(source: int, found: Sequence[Hypothesis]) -> None:
            answers[source] = self.told(examples[source], found)
            tell(source, answers[source])

        self.search(model, batch, self.decode, Listener(ends=ended))
        return [answers[source] for source in range(len(examples))]

    def follow(self, model: nn.Module, batch: Any, tell: Callable[[str], None]) -> Any:
        """Predict a batch of one; `tell` hears how the text begins whenever more of it is certain."""
        if self.decode.n_best > 1:
            raise RecipeError("decode.n_best: only one answer can be followed; leave it at 1")
        (example,) = batch.examples
        heard = ""

        def more(source: int, ids: Sequence[int]) -> None:
            nonlocal heard
            text = self.text_of(example, ids).rstrip("\ufffd")  # a character that is not yet whole
            if len(text) > len(heard):
                heard = text
                tell(text)

        (found,) = self.search(model, batch, self.decode, Listener(begins=more))
        answer = self.told(example, found)
        if answer.text != heard:
            tell(answer.text)
        return answer

    def recorded(self, model: nn.Module, batch: Any) -> Tree:
        """The search for the answer of a batch of one."""
        if self.decode.sample or self.decode.beam == 1:
            raise RecipeError("decode.beam: only a search with a beam of at least 2 has a tree; give beam=4")
        tree = Tree(self.writer.tokenizer.marks.end, self.decode.length_penalty)
        self.search(model, batch, self.decode, Listener(tree=tree))
        return tree
