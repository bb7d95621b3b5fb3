"""The answer of transcribe: a text with its words in time, and the forms it may be written in."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from regard.fields.word_borders import UNLEARNT, Border, WordBorders
from regard.metrics.speech import aligned
from regard.tasks.prediction import OTHERS, Rounded, Written

LONGEST_LINE, LONGEST_CUE, PAUSE = 42, 6.0, 1.0
"""Characters, and seconds, of a subtitle; the silence, in seconds, after which another begins."""


class Word(BaseModel):
    model_config = ConfigDict(frozen=True)

    word: str
    start: Rounded = Field(description="seconds from the beginning of the recording")
    end: Rounded
    probability: Rounded = Field(description="of its labels, each at the moment when it was written")


class Transcript(Written):
    words: tuple[Word, ...] = Field((), description="each with its time")
    others: tuple["Transcript", ...] = OTHERS
    frames: tuple[int, ...] = Field((), exclude=True)
    """The state of the encoder at which each label was written."""

    def as_form(self, form: str, name: str, number: int) -> str:
        """The transcript as subtitles or as lines with times; `name` is what the recording is called."""
        if form == "ctm":
            return "\n".join(
                f"{name} 1 {word.start:.3f} {word.end - word.start:.3f} {word.word} {word.probability:.3f}"
                for word in self.words
            )
        cues = [_cue(words, form, at) for at, words in enumerate(cues_of(self.words), 1)]
        head = "WEBVTT\n\n" if form == "vtt" and number == 1 else ""
        return head + "\n\n".join(cues)


def cues_of(words: Sequence[Word]) -> list[list[Word]]:
    """Words that are shown together."""
    cues: list[list[Word]] = []
    for word in words:
        cue = cues[-1] if cues else []
        length = sum(len(one.word) + 1 for one in cue) + len(word.word)
        long = cue and (length > LONGEST_LINE or word.end - cue[0].start > LONGEST_CUE)
        if not cue or long or word.start - cue[-1].end > PAUSE:
            cues.append([])
        cues[-1].append(word)
    return cues


def _cue(words: Sequence[Word], form: str, number: int) -> str:
    begin, end = (_stamp(at, "," if form == "srt" else ".") for at in (words[0].start, words[-1].end))
    text = " ".join(word.word for word in words)
    return f"{number}\n{begin} --> {end}\n{text}" if form == "srt" else f"{begin} --> {end}\n{text}"


def _stamp(seconds: float, point: str) -> str:
    whole = round(1000 * max(0.0, seconds))
    minutes, milliseconds = divmod(whole, 60_000)
    return (
        f"{minutes // 60:02d}:{minutes % 60:02d}:{milliseconds // 1000:02d}{point}{milliseconds % 1000:03d}"
    )


def to_words(spelt: Sequence[str]) -> list[list[int]]:
    """The labels of each word, of what every label adds to the text: a space begins a word."""
    words: list[list[int]] = [[]]
    for place, text in enumerate(spelt):
        if text[:1].isspace() and words[-1]:
            words.append([])
        if text.strip():
            words[-1].append(place)
    return [word for word in words if word]


def spelling_of(tokenizer: Any, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(ids)).strip()


def borders_of(pairs: Iterable[tuple[Sequence[Mapping[str, Any]], Sequence[Word]]]) -> WordBorders:
    """Of the words of people with their times, and words of a task that has learnt no borders yet."""
    found: dict[str, list[Border]] = defaultdict(list)
    for spoken, written in pairs:
        right = " ".join(str(one["word"]) for one in spoken)
        for kind, place, at in aligned(" ".join(one.word for one in written), right):
            if kind == "equal" and place < len(spoken) and at < len(written):
                first, last = written[at].start - UNLEARNT[0], written[at].end - UNLEARNT[1]
                border = float(spoken[place]["start"]) - first, float(spoken[place]["end"]) - last
                found[written[at].word].append(border)
    return WordBorders.of(found)
