"""Answers as a table, beside the columns of the file that was answered: CSV, TSV, JSON lines or Parquet."""

import csv
import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.files import fill
from regard.errors import RunError
from regard.text.sanitize import finite, one_line

if TYPE_CHECKING:
    from regard.files.columns import Column
    from regard.files.row import Row
    from regard.tasks.task import Prediction

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
Cells = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A file to write, in the format that its name says."""

    path: Path

    @classmethod
    def named(cls, out: Path, source: str) -> "Table":
        """RunError for a name that cannot be written, before anything is answered."""
        if out.suffix not in SUFFIXES:
            raise RunError(
                f"--out {out}: give a name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
            )
        if not out.parent.is_dir():
            raise RunError(f"--out {out}: no such folder; make it, or choose another")
        if out.exists() and Path(source).exists() and out.samefile(source):
            raise RunError(f"--out {out}: is the file that is read; choose another name")
        return cls(out)

    def write(self, rows: Iterable[Cells]) -> int:
        """Returns how many rows there are."""
        n = 0

        def counted() -> Iterator[Cells]:
            nonlocal n
            for row in rows:
                n += 1
                yield row

        writers: dict[str, Callable[[Path, Iterator[Cells]], None]] = {
            ".csv": _write_csv,
            ".tsv": _write_tsv,
            ".jsonl": _write_json_lines,
            ".parquet": _write_parquet,
        }
        fill(self.path, lambda place: writers[self.path.suffix](place, counted()))
        return n


def joined(
    answered: "Iterable[tuple[Row, Prediction | None]]",
    file: str,
    columns: "Mapping[str, Column | None]",
    encoding: str,
    top: int,
) -> Iterator[Cells]:
    """The record of each row with the cells of its answer."""
    from regard.files.records import records

    whole = records(file, columns, encoding)
    line, record = next(whole, (-1, {}))
    for row, answer in answered:
        while 0 <= line < row.line:
            line, record = next(whole, (-1, {}))
        own: Cells = record if line == row.line else row.cells
        cells = answer_cells(answer, top)
        yield {**own, **{f"predicted_{name}" if name in own else name: cell for name, cell in cells.items()}}


def listed(answered: "Iterable[tuple[Row, Prediction | None]]", inputs: Container[str]) -> Iterator[Cells]:
    """A row for each item of each list, behind what the question is called: its user, or its line."""
    for row, answer in answered:
        names = {name: cell for name, cell in row.cells.items() if name not in inputs and type(cell) is str}
        called: Cells = names or {"line": row.line}
        for one in (answer and answer.rows()) or ():
            yield {**called, **one}


def answer_cells(answer: "Prediction | None", top: int) -> dict[str, Any]:
    """The columns of an answer: `answer`, its score, what else it holds, and as many of the next best."""
    if answer is None:
        return {"answer": ""}
    values = answer.to_json()
    cells = {"answer": values.pop("text")}
    cells |= {name: value for name, value in values.items() if name not in RANKED}
    cells["input_cut"] = answer.cut
    score_name = "probability" if "probability" in cells else "score"
    ranked = answer.ranked()
    for place in range(1, top):
        text, score = ranked[place] if place < len(ranked) else (None, None)
        cells |= {f"answer_{place + 1}": text, f"{score_name}_{place + 1}": score}
    return cells


RANKED = ("probabilities", "others", "input_cut")
"""Parts of an answer that have columns of their own."""
LOOKED_AT = 1000
"""Rows whose columns are those of a table; its header stands before the rest is known."""


def _headed(path: Path, rows: Iterator[Cells]) -> tuple[list[str], Iterator[Cells]]:
    first = list(islice(rows, LOOKED_AT))
    header = list(dict.fromkeys(name for row in first for name in row))

    def checked() -> Iterator[Cells]:
        for number, row in enumerate(chain(first, rows), 1):
            if strange := row.keys() - set(header):
                name = path.with_suffix(".jsonl").name
                raise RunError(
                    f"row {number}: has a column {min(strange)!r}, which the first {LOOKED_AT:,} rows "
                    f"have not; write JSON lines instead, as in --out {name}"
                )
            yield row

    return header, checked()


def _write_csv(path: Path, rows: Iterator[Cells]) -> None:
    header, rows = _headed(path, rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, header, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _plain(cell) for name, cell in row.items()} for row in rows)


def _write_tsv(path: Path, rows: Iterator[Cells]) -> None:
    """Tabs and line ends in a cell become spaces, as TSV has no quotes."""
    header, rows = _headed(path, rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write("\t".join(map(one_line, header)) + "\n")
        for row in rows:
            plain = ("" if row.get(name) is None else str(_plain(row[name])) for name in header)
            file.write("\t".join(map(one_line, plain)) + "\n")


def _write_json_lines(path: Path, rows: Iterator[Cells]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(finite(row), ensure_ascii=False) + "\n")


def _write_parquet(path: Path, rows: Iterator[Cells]) -> None:
    from regard.files.parquet import write

    header, rows = _headed(path, rows)
    write(path, header, ([_flat(row.get(name)) for name in header] for row in rows))


def _plain(cell: Any) -> Any:
    """A cell of text or a number, as CSV has it."""
    return str(cell).lower() if isinstance(cell, bool) else _flat(cell)


def _flat(cell: Any) -> Any:
    """One value; JSON for what holds several."""
    return (
        cell if isinstance(cell, str | int | float | None) else json.dumps(finite(cell), ensure_ascii=False)
    )
