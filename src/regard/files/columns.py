"""Which column of a table holds what: by its number, its name, or what such columns are usually called."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from regard.errors import DataError
from regard.files.lines import nearest

SYNONYMS = {
    "source": ("source", "src", "原文"),
    "target": ("target", "tgt", "trg", "translation", "译文"),
    "text": (
        *("text", "sentence", "review", "document", "文本", "句子", "premise", "sentence1", "question1"),
        *("transcript", "transcription", "normalized_text", "转写"),
        *("tokens", "words", "词语"),
    ),
    "second": ("second", "hypothesis", "sentence2", "question2"),
    "image": (
        *("image", "images", "picture", "pictures", "photo", "img", "file", "filename", "file_name", "path"),
        *("图像", "图片", "照片"),
    ),
    "audio": (
        *("audio", "audio_filepath", "audio_path", "wav", "sound", "recording", "clip", "file", "filename"),
        *("file_name", "path", "音频", "录音", "语音"),
    ),
    "captions": ("captions", "caption", "sentences", "描述", "说明"),
    "objects": ("objects", "boxes"),
    "video": ("video", "clip", "film", "file", "filename", "file_name", "path", "视频"),
    "label": ("label", "labels", "class", "category", "sentiment", "relation", "标签", "类别", "关系"),
    "tags": ("tags", "ner_tags", "pos_tags", "upos", "标注"),
    "document": ("document", "article", "文章", "正文"),
    "summary": ("summary", "abstract", "highlights", "摘要"),
    "question": ("question", "query", "问题"),
    "context": (
        *("context", "passage", "paragraph", "上下文", "段落"),
        *("history", "turns", "dialogue", "dialog", "conversation", "messages", "对话"),
    ),
    "answer": ("answer", "answers", "答案"),
    "reply": ("reply", "response", "responses", "references", "回复"),
}
INTERACTIONS = {
    "user": (
        *("user", "user_id", "userid", "uid", "customer", "customer_id", "visitor", "visitor_id", "account"),
        *("reviewerid", "reviewer_id", "session", "session_id", "sessionid", "用户", "会话"),
    ),
    "item": (
        *("item", "item_id", "itemid", "product", "product_id", "productid", "movie", "movie_id", "movieid"),
        *("asin", "parent_asin", "sku", "track", "track_id", "song", "song_id", "artist_id", "book_id"),
        *("isbn", "article_id", "物品", "商品"),
    ),
    "rating": ("rating", "score", "stars", "overall", "评分"),
    "time": (
        *("time", "timestamp", "datetime", "date", "unixreviewtime", "unix_time", "ts", "created_at"),
        *("时间", "日期"),
    ),
    "title": ("title", "name", "标题", "名称"),
    "category": ("category", "categories", "genre", "genres", "类别"),
}
"""Columns of a record of an interaction, and of an item; in other tables these names mean nothing."""

Column = str | int


def cell_places(file: str, columns: Mapping[str, Column | None], header: list[str] | None) -> dict[str, int]:
    """Role → index of its cell."""
    taken = {column - 1 for column in columns.values() if isinstance(column, int)}
    free = (place for place in count() if place not in taken)
    places = {}
    for role, column in columns.items():
        if isinstance(column, int):
            if column < 1:
                raise DataError(f"{file}: column {column} for {role} does not exist; columns count from 1")
            places[role] = column - 1
            _refuse_misnamed(file, role, column, header or ())
        elif header is not None:
            name = column_name(file, role, column, header)
            if header.count(name) > 1:
                raise DataError(f"{file}: several columns are named {name}; give the number of the {role}")
            places[role] = header.index(name)
        elif column is None:
            places[role] = next(free)
        else:
            raise DataError(
                f"{file}: plain text has no column named {column}; leave out the column of {role}"
            )
    return places


def _refuse_misnamed(file: str, role: str, number: int, header: Sequence[str]) -> None:
    """A number that was right for another file."""
    name, right = header[number - 1 : number], named_like(role, header)
    if name and right and any(named_like(other, name) for other in SYNONYMS if other != role):
        raise DataError(
            f"{file}: column {number} is to be the {role}, but is named {name[0]}, and another {right}; "
            f"give the right one by its name, as in columns {role}={right}"
        )


def column_name(where: str, role: str, column: Column | None, names: Sequence[str]) -> str:
    """The column that holds `role`: the given one, or the one named like the role."""
    name = named_like(role, names) if column is None else column
    if name in names and isinstance(name, str):
        return name
    wanted = f"column {column}" if column is not None else f"column named like {role}"
    listed = ["".join(filter(str.isprintable, name[:40])) for name in names[:20]]
    raise DataError(
        f"{where}: no {wanted}; there are {', '.join(listed)}{nearest(str(column or role), listed)}"
    )


def named_like(role: str, names: Iterable[str]) -> str | None:
    """The first of `names` that is the role's own name or a synonym of it."""
    spelled = {name.lower(): name for name in names}
    return next(
        (spelled[name] for name in (SYNONYMS | INTERACTIONS).get(role, (role,)) if name in spelled), None
    )
