"""Kinds of data: one file = one kind of column, torch-free. FIELDS is the table a recipe chooses from."""

from regard.fields.audio import Audio
from regard.fields.field import Field
from regard.fields.image import Image
from regard.fields.label import Label
from regard.fields.series import Series
from regard.fields.text import Text
from regard.fields.video import Video

FIELDS: dict[str, type[Field]] = {
    "text": Text,
    "label": Label,
    "series": Series,
    "image": Image,
    "audio": Audio,
    "video": Video,
}
