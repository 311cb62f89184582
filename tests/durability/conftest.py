"""Disks that forget and fail, and real agents whose data lies on them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..runtime.kernel.conftest import LIMIT_S, Agent, until
from .mount import Mount, why_no_fuse

HERE = Path(__file__).parent


class Victim(Agent):
    """An agent whose kernel's words go to a file, and whose kernel may be an altered one."""

    change = ""

    def launch(self, **options: Any) -> subprocess.Popen[str]:
        asked = {"folder": str(self.folder), "status": False, "volatile_data": True, **options}
        program = [str(HERE / "altered.py"), self.change, "axon.run"] if self.change else ["-m", "axon.run"]
        with self._words.open("a") as words:
            self.process = subprocess.Popen(
                [sys.executable, *program, json.dumps(asked)], stdout=words, stderr=subprocess.STDOUT, text=True
            )
        return self.process

    def words(self) -> str:
        """All that its kernels said."""
        return self._words.read_text() if self._words.exists() else ""

    @property
    def _words(self) -> Path:
        return self.folder.with_suffix(".words")

    def wakes(self) -> int:
        return int(self.summary()["wakes"]["admitted"])

    def wakes_go_on(self) -> None:
        """The brain's rhythm: more wakes than any that were under way."""
        before = self.wakes()
        until(lambda: self.wakes() > before + 15, "the brain goes on waking")

    def storage(self) -> str:
        return str(self.summary()["storage"])

    def end(self) -> None:
        """Whatever state it is in."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait(LIMIT_S)


def made(folder: Path, cognet: str = "mirror", *, config: str = "", sensors: bool = False) -> Victim:
    agent = Victim(folder, cognet=cognet, config=config, sensors=sensors)
    own = HERE / "cognets" / cognet
    if own.is_dir():
        shutil.copytree(own, folder / "cognet")
        file = folder / "axon.toml"
        file.write_text(file.read_text().replace(f'cognet = "{cognet}"', 'cognet = "cognet"'))
    return agent


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Callable[..., Victim]]:
    """Makes agents on the disk of the tests' folder."""
    all_made: list[Victim] = []

    def make(cognet: str = "mirror", **options: Any) -> Victim:
        all_made.append(made(tmp_path / f"agent-{len(all_made)}", cognet, **options))
        return all_made[-1]

    yield make
    for each in all_made:
        each.end()


@pytest.fixture(scope="session")
def fuse() -> None:
    """Without FUSE these tests are skipped by name; where it is required they fail."""
    if reason := why_no_fuse():
        if os.environ.get("AXON_TEST_FUSE") == "required":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture
def mounted(fuse: None, tmp_path: Path) -> Iterator[Callable[..., Mount]]:
    """Mounts disks, and takes them away when the test is over."""
    mounts: list[Mount] = []

    def make(point: Path, **options: Any) -> Mount:
        base = tmp_path / f"disk-{len(mounts)}"
        base.mkdir()
        mounts.append(Mount(point, base, **options))
        return mounts[-1]

    yield make
    for mount in mounts:
        mount.unmount()
