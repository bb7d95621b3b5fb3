"""Tasks that answer with a text: they search for it, and the search can be followed."""

from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from typing import Any, ClassVar, Self

from torch import nn

from regard.decode import DecodeConfig, Hypothesis, Step, Tree
from regard.errors import RecipeError
from regard.tasks.task import MAX_BATCH_ROWS, Task
from regard.tasks.writer import Writer


class Writing(Task):
    searches: ClassVar[bool] = True
    best: ClassVar[str] = "n_best"
    writer: Writer

    @property
    @abstractmethod
    def decode(self) -> DecodeConfig:
        """Settings of the search."""

    @property
    def max_batch_rows(self) -> int:
        return 1 if self.decode.batch_invariant else MAX_BATCH_ROWS

    def checked(self) -> Self:
        """The task itself, if answers can keep what the recipe demands."""
        self.writer.refuse_unkeepable(self.decode)
        return self

    @abstractmethod
    def search(self, model: nn.Module, batch: Any, decode: DecodeConfig) -> Iterator[Step]:
        """Searches for the answers to all examples of a batch."""

    @abstractmethod
    def text_of(self, example: Any, ids: Sequence[int]) -> str:
        """The text of tokens that answer an example."""

    @abstractmethod
    def told(self, example: Any, ranked: Sequence[Hypothesis]) -> Any:
        """Makes the prediction for an example of its hypotheses, the best first."""

    def predict(self, model: nn.Module, batch: Any) -> Iterator[tuple[int, Any]]:
        for step in self.search(model, batch, self.decode):
            for place, ranked in step.ended:
                yield place, self.told(batch.examples[place], ranked)

    def follow(self, model: nn.Module, batch: Any) -> Generator[str, None, Any]:
        """Yields how the answer of a batch of one begins, whenever more is certain; returns the answer."""
        if self.decode.n_best > 1:
            raise RecipeError("decode.n_best: only one answer can be followed; leave it at 1")
        (example,) = batch.examples
        text, answer = "", None
        for step in self.search(model, batch, self.decode):
            for _, ranked in step.ended:
                answer = self.told(example, ranked)
            for ids in step.beginnings().values():
                certain = self.text_of(example, ids).rstrip("\ufffd")  # a character that is not yet whole
                if len(certain) > len(text):
                    text = certain
                    yield text
        assert answer is not None
        if answer.text != text:
            yield answer.text
        return answer

    def recorded(self, model: nn.Module, batch: Any) -> Tree:
        """The search for the answer of a batch of one."""
        if self.decode.sample or self.decode.beam == 1:
            raise RecipeError("decode.beam: only a search with a beam of at least 2 has a tree; give beam=4")
        tree = Tree(self.writer.tokenizer.special.end, self.decode.length_penalty)
        for step in self.search(model, batch, self.decode):
            tree.grow(step)
        return tree
