"""Where each configuration value came from: the file and its line, the hardware profile, or the release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from runtime.config.document import Document, key_text
from runtime.config.lines import Key


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """One value as it applies; ``source`` is ``axon.toml:12``, ``profile raspberry-pi-5`` or ``default``."""

    value: Any
    source: str


def public_url(url: str) -> str:
    """A broker's address without its password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username}:***@{host}"))


def origins(
    document: Document, key: Key, *, section: msgspec.Struct, given: Mapping[str, Any], rest: str
) -> dict[str, Origin]:
    """The origin of every key of one table; ``given`` are those the file has, ``rest`` is the source of the others."""
    values = {field.encode_name: getattr(section, field.name) for field in msgspec.structs.fields(type(section))}
    values |= values.pop("options", {})
    found: dict[str, Origin] = {}
    for name, value in values.items():
        source = f"{document.path.name}:{document.line((*key, name))}" if name in given else rest
        shown = public_url(value) if name == "url" else value
        found[key_text((*key, name))] = Origin(value=shown, source=source)
    return found
