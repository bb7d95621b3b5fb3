"""Every Python that has this folder on its path imports this: the processes of a server know the toys."""

from regard.fields import FIELDS
from regard.models.encoders import ENCODERS
from regard.tasks import TASKS
from toy.image import ToyImage, ToyPatchesConfig
from toy.task import Sorting

FIELDS["toy"] = ToyImage
ENCODERS["patches"] = ToyPatchesConfig
TASKS[Sorting.kind] = Sorting
