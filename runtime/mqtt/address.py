"""The address of a broker and how to speak to it."""

from __future__ import annotations

from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec

from runtime.abi.errors import ConfigInvalid

Version = Literal["3.1.1", "5"]
_PORTS = {"mqtt": 1883, "mqtts": 8883}


class BrokerAddress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a broker listens and as whom to connect.

    A session that isn't clean is kept by the broker under ``client_id`` while this client is away. ``ca_file`` is
    the certificate authority for TLS (None: the system's). The text form leaves the password out.
    """

    host: str
    port: int = 1883
    username: str | None = None
    password: str | None = None
    tls: bool = False
    ca_file: str | None = None
    version: Version = "3.1.1"
    client_id: str = ""
    clean_session: bool = True
    keepalive_s: int = 15

    def __post_init__(self) -> None:
        if not self.clean_session and not self.client_id:
            raise ValueError("a session that the broker keeps needs a client_id")

    def __repr__(self) -> str:
        return f"BrokerAddress({self}, client_id={self.client_id!r})"

    def __str__(self) -> str:
        user = f"{self.username}@" if self.username is not None else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.tls else 'mqtt'}://{user}{host}:{self.port}"

    def named(self, client_id: str, *, clean_session: bool = True) -> BrokerAddress:
        """The same broker for a client of that name."""
        return msgspec.structs.replace(self, client_id=client_id, clean_session=clean_session)


def parse_address(url: str, *, ca_file: str | None = None, version: Version = "3.1.1") -> BrokerAddress:
    """Read ``mqtt[s]://[user[:password]@]host[:port]``; raises ``ConfigInvalid`` with ``key`` and what is wrong."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _invalid(str(error)) from error
    if parts.scheme not in _PORTS:
        raise _invalid(f"its scheme is {parts.scheme!r}")
    if not parts.hostname:
        raise _invalid("it names no host")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise _invalid("something follows the port")
    return BrokerAddress(
        host=parts.hostname,
        port=_PORTS[parts.scheme] if port is None else port,
        username=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        tls=parts.scheme == "mqtts",
        ca_file=ca_file,
        version=version,
    )


def _invalid(why: str) -> ConfigInvalid:
    """The URL itself isn't shown: it may hold a password."""
    return ConfigInvalid(
        f"the broker's URL can't be used: {why}",
        hint='url = "private", or mqtt://user:password@host:1883, or mqtts://host:8883',
        key="broker.url",
    )
