"""The hardware profile of a start: the one that was named, else the one this board has."""

from __future__ import annotations

from hardware_profiles.detect import detect
from hardware_profiles.profile import Profile, ProfileInvalid, load
from runtime.abi.errors import ConfigInvalid


def choose_profile(name: str | None) -> Profile:
    """Raises ``ConfigInvalid`` for a name that no profile has."""
    try:
        return load(name) if name else detect()
    except ProfileInvalid as error:
        raise ConfigInvalid(str(error), key="--profile", expected="the name of a profile", name=error.name) from error
