"""Imported by every Python that has this folder on its path: the processes of a server know the toy field."""

import toy.image  # noqa: F401
