"""Passwords and TLS, on a mosquitto that asks for them."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.abi.errors import BrokerUnavailable
from runtime.mqtt.broker import BrokerPlan, find_mosquitto, free_port
from runtime.mqtt.client import BackOff, BrokerAddress, Connection, keep_connected, parse_address

pytestmark = [
    pytest.mark.mosquitto,
    pytest.mark.skipif(not find_mosquitto(), reason="mosquitto is missing: sudo apt install mosquitto"),
]
NEEDS_OPENSSL = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is missing: sudo apt install openssl")


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def make_authority(folder: Path, name: str) -> None:
    """A certificate authority: ``<name>.pem`` and ``<name>.key``."""
    new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl(folder, *new, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")


def make_certificate(folder: Path, authority: str) -> None:
    """A certificate of ``localhost``: ``server.pem`` and ``server.key``."""
    new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl(folder, *new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=DNS:localhost")
    sign = ["x509", "-req", "-in", "server.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key"]
    openssl(folder, *sign, "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem")


def serve(folder: Path, broker_process: Any, config: str) -> Any:
    """A mosquitto with that configuration, on a free port."""
    port = free_port()
    (folder / "mosquitto.conf").write_text(
        f"user root\nlistener {port} 127.0.0.1\nlog_type none\nmax_inflight_messages 0\n{config}"
    )
    argv = [find_mosquitto(), "-c", str(folder / "mosquitto.conf")]
    broker = broker_process(BrokerPlan(address=BrokerAddress(host="127.0.0.1", port=port), kind="mosquitto", argv=argv))
    broker.start()
    return broker


@pytest.fixture
def guarded(tmp_path: Path, broker_process: Any) -> Iterator[int]:
    """The port of a mosquitto that knows anna alone."""
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(tmp_path / "words"), "anna", "se@cret"], check=True)
    broker = serve(tmp_path, broker_process, f"allow_anonymous false\npassword_file {tmp_path / 'words'}\n")
    yield broker.address.port
    broker.kill()


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory, broker_process: Any) -> Iterator[tuple[int, Path]]:
    """The port of a mosquitto with TLS, and the folder with its authority and another one."""
    folder = tmp_path_factory.mktemp("tls")
    make_authority(folder, "authority")
    make_authority(folder, "stranger")
    make_certificate(folder, "authority")
    files = f"certfile {folder / 'server.pem'}\nkeyfile {folder / 'server.key'}\n"
    broker = serve(folder, broker_process, f"allow_anonymous true\n{files}")
    yield broker.address.port, folder
    broker.kill()


@pytest.mark.parametrize("version", ["3.1.1", "5"])
async def test_the_right_password_opens(guarded: int, version: Any) -> None:
    async with Connection(parse_address(f"mqtt://anna:se%40cret@127.0.0.1:{guarded}", version=version)) as connection:
        await connection.publish("x", b"y", qos=1)


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize("user", ["", "anna@", "anna:wrong@", "bert:se%40cret@"])
async def test_no_other_does(guarded: int, version: Any, user: str) -> None:
    with pytest.raises(BrokerUnavailable, match=r"(?i)not authori[sz]ed") as error:
        async with Connection(parse_address(f"mqtt://{user}127.0.0.1:{guarded}", version=version)):
            pass
    assert "wrong" not in str(error.value)
    assert "cret" not in str(error.value)


async def test_a_wrong_password_is_tried_again_and_told(guarded: int) -> None:
    told: asyncio.Queue[BrokerUnavailable | None] = asyncio.Queue()

    async def served(connection: Connection) -> None:
        raise AssertionError("must not connect")

    address = parse_address(f"mqtt://anna:wrong@127.0.0.1:{guarded}")
    keeping = asyncio.ensure_future(
        keep_connected(address, served, tell=told.put_nowait, back_off=BackOff(first_s=0.01, most_s=0.01))
    )
    async with asyncio.timeout(20):
        assert all([await told.get() is not None for _ in range(3)])
    keeping.cancel()
    await asyncio.wait([keeping])


@NEEDS_OPENSSL
@pytest.mark.parametrize("version", ["3.1.1", "5"])
async def test_messages_of_all_sizes_pass_through_tls(
    certified: tuple[int, Path], version: Any, receive: Any, name: str
) -> None:
    """What TLS has decoded already doesn't wake the loop again: it must be read at once."""
    port, folder = certified
    address = parse_address(f"mqtts://localhost:{port}", ca_file=str(folder / "authority.pem"), version=version)
    sizes = [0, 1, 100, 16_384, 40_000, 1_000_000] * 5
    async with Connection(address) as listener, Connection(address) as speaker:
        await listener.subscribe(name, 1)
        for size in sizes:
            speaker.send(name, bytes(size), qos=1)
        messages = await receive(listener, len(sizes))
        for message in messages:
            message.ack()
    assert [len(message.payload) for message in messages] == sizes


@NEEDS_OPENSSL
@pytest.mark.parametrize(("host", "authority"), [("localhost", "stranger"), ("127.0.0.1", "authority")])
async def test_a_certificate_that_is_not_right_is_refused(
    certified: tuple[int, Path], host: str, authority: str
) -> None:
    """Signed by nobody who is trusted, or made out to another name."""
    port, folder = certified
    with pytest.raises(BrokerUnavailable, match=r"(?i)certificate verify failed"):
        async with Connection(parse_address(f"mqtts://{host}:{port}", ca_file=str(folder / f"{authority}.pem"))):
            pass


@NEEDS_OPENSSL
async def test_a_missing_authority_is_told(certified: tuple[int, Path]) -> None:
    port, folder = certified
    with pytest.raises(BrokerUnavailable, match="No such file"):
        async with Connection(parse_address(f"mqtts://localhost:{port}", ca_file=str(folder / "none.pem"))):
            pass
