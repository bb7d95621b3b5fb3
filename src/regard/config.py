"""What every configuration is: frozen, strict, and written beside the class it configures."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """A typo is an error, a built thing never changes its mind."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
