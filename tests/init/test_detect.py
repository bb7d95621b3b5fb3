from collections import Counter
from pathlib import Path

import pytest

from regard.errors import DataError
from regard.files.columns import Column
from regard.files.read import read_rows
from regard.init.columns import Table
from regard.init.detect import MAX_SAMPLE, detect
from regard.init.match import Missing
from regard.tasks import TASKS

ENGLISH = ["I know.", "Go away!", "The dog barks at night.", "What a lovely day it is.", "She left."]
CHINESE = ["我知道。", "走开！", "狗在夜里叫。", "多好的一天。", "她走了。"]


def sentences(samples: list[str], n: int) -> list[str]:
    return [f"{samples[row % len(samples)]} {row}" for row in range(n)]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_table(name: str, *columns: list[str], header: str = "", between: str = "\t") -> str:
    rows = [between.join(cells) for cells in zip(*columns, strict=True)]
    Path(name).write_text("\n".join([header, *rows] if header else rows) + "\n", encoding="utf-8")
    return name


def write_pairs(name: str, n: int = 31, header: str = "") -> str:
    return write_table(name, sentences(ENGLISH, n), sentences(CHINESE, n), header=header)


def write_lines(name: str, samples: list[str], n: int = 31) -> str:
    return write_table(name, sentences(samples, n))


def write_labelled(name: str, n: int = 41, header: str = "", labels: tuple[str, ...] = ("neg", "pos")) -> str:
    return write_table(
        name, [labels[row % len(labels)] for row in range(n)], sentences(ENGLISH, n), header=header
    )


# Translation.


def test_two_aligned_files_are_source_and_target_in_the_order_given() -> None:
    guess = detect([write_lines("train.en", ENGLISH), write_lines("train.zh", CHINESE)])
    assert (guess.task, guess.train, guess.valid, guess.test) == (
        "translate",
        ("train.en", "train.zh"),
        None,
        None,
    )
    assert guess.columns == {"source": None, "target": None}
    assert guess.n_rows == 31
    assert [row.where for row in guess.sample[:3]] == ["train.en:1", "train.en:2", "train.en:3"]
    assert guess.sample[0].cells == {"source": "I know. 0", "target": "我知道。 0"}
    assert any("The source is train.en" in reason for reason in guess.reasons)


def test_splits_by_name_and_languages_in_the_order_of_training() -> None:
    for name in ("train", "dev", "tst-2016.tok"):
        write_lines(f"{name}.zh", CHINESE), write_lines(f"{name}.en", ENGLISH)
    guess = detect(["tst-2016.tok.en", "dev.en", "train.zh", "train.en", "dev.zh", "tst-2016.tok.zh"])
    assert guess.train == ("train.zh", "train.en")
    assert guess.valid == ("dev.zh", "dev.en")
    assert guess.test == ("tst-2016.tok.zh", "tst-2016.tok.en")
    assert guess.sample[0].cells["source"] == "我知道。 0"


def test_names_without_a_split_are_for_training() -> None:
    guess = detect([write_pairs("corpus.tsv"), write_pairs("valid.tsv")])
    assert (guess.train, guess.valid) == (("corpus.tsv",), ("valid.tsv",))
    assert "no name says anything else" in guess.reasons[0]


def test_shipped_pairs_without_their_attribution() -> None:
    guess = detect([f"regard:tatoeba_cmn_eng/{split}.tsv.gz" for split in ("train", "valid", "test")])
    assert (guess.task, guess.columns, guess.n_rows) == ("translate", {"source": 1, "target": 2}, 27_153)
    assert guess.test == ("regard:tatoeba_cmn_eng/test.tsv.gz",)


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("source\ttarget", {"source": "source", "target": "target"}),
        ("Target\tSRC", {"source": "SRC", "target": "Target"}),
        ("English\tChinese", {"source": "English", "target": "Chinese"}),
        ("英文\t中文", {"source": "英文", "target": "中文"}),
        ("译文\t原文", {"source": "原文", "target": "译文"}),
        ("", {"source": 1, "target": 2}),
    ],
)
def test_headers_of_pairs(header: str, columns: dict[str, Column]) -> None:
    guess = detect([write_pairs("pairs.tsv", header=header)])
    assert (guess.task, guess.columns, guess.n_rows) == ("translate", columns, 31)


def test_numbers_are_no_text() -> None:
    numbers = [str(row) for row in range(31)]
    file = write_table("train.tsv", numbers, sentences(ENGLISH, 31), sentences(CHINESE, 31))
    assert detect([file]).columns == {"source": 2, "target": 3}


def test_lengths_are_mean_and_95th_percentile() -> None:
    file = write_table("train.tsv", ["x" * length for length in range(1, 102)], sentences(ENGLISH, 101))
    assert detect([file], task="translate").lengths["source"] == (51, 96)


def test_blank_lines_do_not_hide_how_much_text_there_is() -> None:
    lines = [line for row in range(40) for line in ("", f"{row} " + "one word after another " * 13, "")]
    guess = detect([write_table("input.txt", lines)], task="language_model")
    assert guess.n_characters == pytest.approx(len("\n".join(lines)), rel=0.02)


# Classification.


def test_shipped_labels() -> None:
    guess = detect(["regard:mr_sentence_polarity/train.tsv.gz"])
    assert (guess.task, guess.columns, guess.n_rows) == ("classify", {"text": 2, "label": 1}, 8_530)
    assert "The label is column 1: it holds only 2 different short values." in guess.reasons


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("label\ttext", {"text": "text", "label": "label"}),
        ("stars\treview", {"text": "review", "label": "stars"}),
        ("stars\tcomment", {"text": "comment", "label": "stars"}),
        ("标签\t评论", {"text": "评论", "label": "标签"}),
        ("", {"text": 2, "label": 1}),
    ],
)
def test_headers_of_labelled_texts(header: str, columns: dict[str, Column]) -> None:
    guess = detect([write_labelled("train.tsv", header=header)])
    assert (guess.task, guess.columns, guess.n_rows) == ("classify", columns, 41)
    assert {row.cells["label"] for row in guess.sample} == {"neg", "pos"}


def test_names_win_over_statistics() -> None:
    """Statistics would take the few languages for the label and the long comments for the text."""
    n = 53
    file = write_table(
        "train.csv",
        [f"topic{row % 23}" for row in range(n)],
        ["en" if row % 2 else "zh" for row in range(n)],
        [f"a long remark about number {row} that nobody asked for" for row in range(n)],
        [f"short text {row}" for row in range(n)],
        header="class,language,remark,text",
        between=",",
    )
    assert detect([file]).columns == {"text": "text", "label": "class"}


def test_the_longest_of_several_texts() -> None:
    names = [f"user {row}" for row in range(41)]
    file = write_table("train.tsv", names, sentences(ENGLISH, 41), (["0", "1"] * 21)[:41])
    assert detect([file]).columns == {"text": 2, "label": 3}


@pytest.mark.parametrize(
    ("columns", "header", "found"),
    [
        ([ENGLISH * 9], "poem", {"text": "poem"}),
        ([CHINESE * 9], "poem", {"text": "poem"}),
        ([ENGLISH * 9], "", {"text": 1}),
    ],
    ids=["english", "chinese", "none"],
)
def test_a_header_of_unknown_names_above_texts(
    columns: list[list[str]], header: str, found: dict[str, Column]
) -> None:
    guess = detect([write_table("train.csv", *columns, header=header, between=",")], task="language_model")
    assert guess.columns == found
    assert guess.n_rows == len(columns[0])


@pytest.mark.parametrize("name", ["fits", "label"])
def test_questions_and_answers_beside_labels_are_pairs(name: str) -> None:
    verdicts = (["yes", "no"] * 21)[:41]
    asked, said = sentences(ENGLISH, 41), sentences(ENGLISH[::-1], 41)
    guess = detect([write_table("train.tsv", asked, said, verdicts, header=f"question\tanswer\t{name}")])
    assert guess.task == "classify_pair"
    assert guess.columns == {"text": "question", "second": "answer", "label": name}


def test_words_above_words_are_no_header() -> None:
    words = ["amber", "birch", "cedar", "delta"] * 9
    assert detect([write_table("pairs.tsv", words, words[::-1])], task="translate").columns == {
        "source": 1,
        "target": 2,
    }


def test_a_rare_number_on_the_first_line_is_no_header() -> None:
    file = write_table("train.tsv", ["7"] + ["0", "1"] * 25, sentences(ENGLISH, 51))
    guess = detect([file])
    assert (guess.columns, guess.n_rows) == ({"text": 2, "label": 1}, 51)


@pytest.mark.parametrize(("distinct", "task"), [(50, "classify"), (51, "translate")])
def test_more_than_fifty_recurring_values_are_no_labels(distinct: int, task: str) -> None:
    n = 20 * distinct
    file = write_table("train.tsv", [f"w{row % distinct}" for row in range(n)], sentences(CHINESE, n))
    assert detect([file]).task == task


def test_a_sorted_file_is_sampled_from_end_to_end() -> None:
    n = 2 * MAX_SAMPLE + 7
    labels = ["neg"] * (n - 1000) + ["pos"] * 1000
    guess = detect([write_table("train.tsv", sentences(ENGLISH, n), labels)])
    assert (guess.columns, guess.n_rows) == ({"text": 1, "label": 2}, n)


def test_a_file_of_labels_beside_a_file_of_texts() -> None:
    labels, texts = write_table("labels.txt", ["0", "1"] * 17), write_lines("texts.txt", ENGLISH, 34)
    guess = detect([labels, texts])
    assert (guess.task, guess.columns) == ("classify", {"text": 2, "label": 1})
    assert guess.sample[1].cells == {"text": "Go away! 1", "label": "1"}


def test_json_lines_with_numbers_booleans_and_things_that_are_neither() -> None:
    lines = [f'{{"id": {row}, "body": "{text}", "spam": {"true" if row % 3 else "false"}, "tags": []}}'
             for row, text in enumerate(sentences(ENGLISH, 37))]  # fmt: skip
    guess = detect([write_table("train.jsonl", lines)])
    assert (guess.task, guess.columns) == ("classify", {"text": "body", "label": "spam"})
    assert guess.sample[0].cells["label"] == "false"


def test_json_lines_with_words_and_their_tags() -> None:
    lines = ['{"id": 1, "tokens": ["Mr", "Lee", "met", "me"], "ner_tags": ["O", "B-PER", "O", "O"]}',
             '{"id": 2, "tokens": ["New York"], "ner_tags": ["B-LOC"]}'] * 20  # fmt: skip
    guess = detect([write_table("train.jsonl", lines)])
    assert (guess.task, guess.columns) == ("tag", {"text": "tokens", "tags": "ner_tags"})
    assert guess.sample[0].cells == {"text": ["Mr", "Lee", "met", "me"], "tags": ["O", "B-PER", "O", "O"]}
    assert guess.sample[1].cells["text"] == ["New\u00a0York"]


def test_json_lines_with_lists_of_labels() -> None:
    labels = ["[]", '["a, or b", "c"]', '["c"]', '["a, or b"]', '["d", "c"]']
    lines = [f'{{"text": "{text}", "labels": {labels[row % 5]}}}'
             for row, text in enumerate(sentences(ENGLISH, 50))]  # fmt: skip
    guess = detect([write_table("train.jsonl", lines)])
    assert (guess.task, guess.columns) == ("multilabel", {"text": "text", "label": "labels"})
    assert guess.sample[1].cells["label"] == ["a, or b", "c"]


@pytest.mark.parametrize("texts", ["true", "null", '"an answer"', '{"a": 1}'])
def test_answers_that_are_no_lists_are_refused(texts: str) -> None:
    line = f'{{"question": "who", "context": "Ann", "answers": {{"text": {texts}, "answer_start": 1}}}}'
    with pytest.raises(DataError, match=r'train\.jsonl:1: its answers need lists "text" and "answer_start"'):
        detect([write_table("train.jsonl", [line] * 3)])


def test_keywords_are_no_tags() -> None:
    lines = [f'{{"text": "{text}", "label": "{"ab"[row % 2]}", "tags": ["x", "y"]}}'
             for row, text in enumerate(sentences(ENGLISH, 50))]  # fmt: skip
    assert detect([write_table("train.jsonl", lines)]).task == "classify"


def test_a_wide_table_takes_no_more_than_a_look_at_every_two_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(("wide.tsv",), {n: [f"{text} {n}" for text in sentences(ENGLISH, 30)] for n in range(13)})
    looks: Counter[str] = Counter()
    for name in ("tasks.answer_data._answers", "text.tags.scheme"):
        monkeypatch.setattr(f"regard.{name}", lambda *columns, name=name: looks.update([name]))
    assert isinstance(TASKS["answer"].recognise(table, {}), Missing)
    assert isinstance(TASKS["tag"].recognise(table, {}), Missing)
    assert looks == {"tasks.answer_data._answers": 13 * 12, "text.tags.scheme": 13}


# What is said is not guessed.


def test_columns_that_were_given() -> None:
    file = write_pairs("train.tsv")
    guess = detect([file], columns={"source": 2})
    assert (guess.task, guess.columns) == ("translate", {"source": 2, "target": 1})
    assert "The source is column 2, as given." in guess.reasons
    assert detect([file], task="classify", columns={"label": 2}).columns == {"text": 1, "label": 2}


def test_numbers_become_names_where_there_is_a_header() -> None:
    """Otherwise the header of unknown names would be read as a row."""
    file = write_labelled("train.tsv", header="stars\tcomment")
    guess = detect([file], columns={"text": 2, "label": 1})
    assert guess.columns == {"text": "comment", "label": "stars"}
    assert guess.n_rows == 41


def test_a_given_name_makes_the_first_line_a_header() -> None:
    file = write_pairs("train.tsv", header="Left\tRight")
    assert detect([file]).n_rows == 32
    guess = detect([file], columns={"source": "Right"})
    assert (guess.columns, guess.n_rows) == ({"source": "Right", "target": "Left"}, 31)


def test_the_guess_can_be_read_back() -> None:
    guess = detect([write_labelled("train.tsv", labels=("a", "b", "c"))])
    assert len(list(read_rows(guess.train, guess.columns))) == guess.n_rows


# Language modelling.


def test_a_text_file_is_to_be_continued() -> None:
    guess = detect([write_lines("book.txt", ENGLISH), write_lines("book-valid.txt", ENGLISH, 5)])
    assert (guess.task, guess.train, guess.valid) == ("language_model", ("book.txt",), ("book-valid.txt",))
    assert guess.columns == {"text": None}


def test_so_is_a_column_with_nothing_beside_it() -> None:
    assert detect([write_table("a.csv", CHINESE * 5, header="text")]).task == "language_model"
    assert detect([write_labelled("b.tsv", header="label\ttext")]).task == "classify", "but not with labels"


def test_text_files_that_are_told_to_be_continued_need_not_be_aligned() -> None:
    files = [write_lines("a.en", ENGLISH, 9), write_lines("b.zh", CHINESE, 31)]
    assert detect(files, task="language_model").n_rows == 40
    assert detect(files).task == "language_model"
    nearly = [write_lines("train.en", ENGLISH, 40), write_lines("train.zh", CHINESE, 39)]
    with pytest.raises(DataError, match="the files must belong together line by line"):
        detect(nearly)


def test_a_column_can_be_told_to_be_continued() -> None:
    guess = detect([write_pairs("pairs.tsv")], task="language_model", columns={"text": 2})
    assert guess.columns == {"text": 2}


# What cannot be told.


def test_plain_numbers_are_no_task() -> None:
    with pytest.raises(
        DataError,
        match=r"^book\.txt: cannot tell .*column 1 \(31 different values, mean length \d+\).*label=COLUMN",
    ):
        detect([write_table("book.txt", [str(n * n) for n in range(31)])])


def test_two_columns_of_labels_are_one_too_many() -> None:
    stars, sizes = ["1", "2"] * 20, ["big", "small", "small", "big"] * 10
    file = write_table("train.tsv", sentences(ENGLISH, 40), stars, sizes)
    with pytest.raises(
        DataError,
        match=r"train\.tsv: which is the label\? column 2 and column 3 both hold few different short values; "
        r"say it, as in: regard init train\.tsv --task classify --column label=COLUMN",
    ):
        detect([file])
    assert detect([file], columns={"label": 3}).columns == {"text": 1, "label": 3}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ((), "no files are given; try: regard init"),
        (("train.tsv", "train.en"), r"plain text and files of records are mixed in train\.tsv, train\.en"),
        (("test.tsv", "dev.tsv"), r"no training file among test\.tsv, dev\.tsv; name one like train\.tsv"),
        (("train.tsv", "extra.tsv"), r"^extra\.tsv: train, valid or test\?"),
        (("train.en", "train.de", "test.en"), r"^test\.en: 1 files, but training has 2; give one set"),
        (("nowhere.tsv",), r"^nowhere\.tsv: no such file"),
        (("train.tsv", "nowhere.tsv"), r"^nowhere\.tsv: no such file"),
    ],
)
def test_files_that_make_no_set(
    files: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in files:
        if file != "nowhere.tsv":
            Path(file).touch()
    with pytest.raises(DataError, match=message):
        detect(files)


@pytest.mark.parametrize(
    ("name", "content"), [("train.tsv", "text\tlabel\n"), ("train.tsv", "\n\n"), ("train.jsonl", "\n")]
)
def test_no_records(name: str, content: str) -> None:
    Path(name).write_text(content)
    with pytest.raises(DataError, match=r"^train\.\w+: holds no records"):
        detect([name])


def test_json_without_a_text_in_every_object() -> None:
    Path("train.jsonl").write_text('{"turns": ["a", "b"]}\n{"text": "c"}\n')
    with pytest.raises(
        DataError, match=r"^train\.jsonl: cannot tell the task or its columns from these columns"
    ):
        detect(["train.jsonl"])


def test_aligned_files_of_different_length() -> None:
    with pytest.raises(DataError, match=r"a\.en has 31 lines but a\.zh has 29: a\.en:30 is the first"):
        detect([write_lines("a.en", ENGLISH, 31), write_lines("a.zh", CHINESE, 29)])


def test_a_test_file_that_lacks_the_columns() -> None:
    train = write_labelled("train.tsv", header="label\ttext")
    test = write_table("test.tsv", ENGLISH, header="sentence")
    with pytest.raises(DataError, match=r"^test\.tsv: no column text; there are sentence"):
        detect([train, test])


def test_unknown_task_and_roles() -> None:
    file = write_pairs("train.tsv")
    with pytest.raises(DataError, match=r"^unknown task translat; did you mean translate\?"):
        detect([file], task="translat")
    with pytest.raises(
        DataError, match=r"^no task has columns for source and label: translate has source and target"
    ):
        detect([file], columns={"source": 1, "label": 2})


# Recommendation.


def interactions(between: str, header: str = "", suffix: str = "csv") -> str:
    rows = [
        between.join([f"{n % 23}", f"{1000 + n * 7 % 31}", f"{1 + n % 5}", f"{1_700_000_000 + 60 * n}"])
        for n in range(300)
    ]
    name = f"ratings.{suffix}"
    Path(name).write_text("\n".join([header, *rows] if header else rows) + "\n", "utf-8")
    return name


def film_titles(name: str, header: str, between: str) -> str:
    rows = [between.join([f"{1000 + n}", f"The film number {n} (1999)", "Drama"]) for n in range(40)]
    Path(name).write_text("\n".join([header, *rows] if header else rows) + "\n", "utf-8")
    return name


@pytest.mark.parametrize(
    ("between", "header", "suffix"),
    [
        (",", "userId,movieId,rating,timestamp", "csv"),
        (",", "visitor_id,sku,stars,created_at", "csv"),
        ("\t", "", "tsv"),
        ("::", "", "dat"),
    ],
)
def test_who_chose_what_is_recommendation(between: str, header: str, suffix: str) -> None:
    guess = detect([interactions(between, header, suffix)])
    named: list[Column] = [*header.split(",")] if header else [1, 2, 3, 4]
    assert guess.task == "recommend"
    assert [guess.columns[role] for role in ("user", "item", "rating", "time")] == named
    assert guess.suggestions["items"].settings == {}
    assert guess.titles is None


@pytest.mark.parametrize(
    ("name", "header", "between", "columns"),
    [
        ("movies.csv", "movieId,title,genres", ",", {}),
        ("movies.csv", "id,title,genres", ",", {"item": "id"}),
        ("movies.dat", "", "::", {}),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_what_items_are_called(
    name: str, header: str, between: str, columns: dict[str, Column], first: bool
) -> None:
    files = [film_titles(name, header, between), interactions("\t", suffix="tsv")]
    guess = detect(files if first else files[::-1])
    assert (guess.task, guess.train) == ("recommend", ("ratings.tsv",))
    assert guess.titles is not None
    assert (guess.titles.file, dict(guess.titles.columns)) == (name, columns)


def test_two_tables_of_interactions_are_no_titles() -> None:
    guess = detect([interactions(","), interactions("\t", suffix="tsv")])
    assert guess.titles is None
    assert guess.train == ("ratings.csv", "ratings.tsv")


@pytest.mark.parametrize("users", [True, False])
def test_lines_of_numbers_are_histories(users: bool) -> None:
    rows = [f"{n if users else n % 3} " + " ".join(str(n * k % 11) for k in range(2, 9)) for n in range(40)]
    Path("seq.txt").write_text("\n".join(rows) + "\n", "utf-8")
    guess = detect(["seq.txt"])
    assert guess.task == "recommend"
    assert guess.suggestions["items"].settings.get("lines", "user items") == (
        "user items" if users else "items"
    )


def test_what_the_core_leaves_is_the_reason_for_it() -> None:
    rows = [f"{n % 23},{n * 7 % 31},{1_700_000_000 + n}" for n in range(400)] + ["lonely,rare,1700000000"]
    Path("ratings.csv").write_text("\n".join(["user,item,time", *rows]) + "\n", "utf-8")
    suggestion = detect(["ratings.csv"]).suggestions["items"]
    assert suggestion.settings == {"min_user": 5, "min_item": 5}
    assert suggestion.reasons["min_user"] == ("the 5-core keeps 400 of 401 interactions, of 23 of 24 users")
