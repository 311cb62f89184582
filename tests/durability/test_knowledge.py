"""Knowledge through cuts and kills: what was acknowledged holds; an entry is old or new, never torn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from capsule.errors import AxonError
from runtime.durable.files import BEGUN, make_folder
from runtime.knowledge.knowledge import Knowledge

from ..runtime.kernel.conftest import LIMIT_S
from .disk import CUTS
from .mount import Mount

MakeMount = Callable[..., Mount]
WRITER = """
import sys
from pathlib import Path
from runtime.knowledge.knowledge import Knowledge
knowledge, n = Knowledge(Path(sys.argv[1])), 0
while True:
    n += 1
    knowledge.write(f"notes-{n % 5}/entry", (f"{n} " * 20_000).encode())
    print(n, flush=True)
"""


class Promises:
    """What was acknowledged, by name; and the one change that wasn't yet."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.begun: tuple[str, str | None] | None = None
        self.count = 0

    def keep_changing(self, knowledge: Knowledge, seed: int) -> None:
        """New folders, new entries, new contents and removals, until the disk is gone."""
        for n in range(100_000):
            name = f"{seed}-{n % 13}/deep/{n % 3}"
            content = None if n % 5 == 4 else f"{seed} {n} " * 700
            self.begun = (name, content)
            try:
                if content is None:
                    knowledge.remove(name)
                    self.kept.pop(name, None)
                else:
                    knowledge.write(name, content.encode())
                    self.kept[name] = content
            except (AxonError, OSError):
                return  # the power is gone
            self.begun = None
            self.count += 1

    def missing(self, found: dict[str, str]) -> list[str]:
        """Every name whose content is neither what was acknowledged nor what was begun."""
        wrong = []
        for name in found.keys() | self.kept.keys():
            allowed = [self.kept.get(name)]
            if self.begun and self.begun[0] == name:
                allowed.append(self.begun[1])
            if found.get(name) not in allowed:
                wrong.append(name)
        return wrong


@pytest.mark.parametrize("lying", [False, True], ids=["honest", "a disk that ignores syncs"])
def test_what_was_acknowledged_survives_cuts(mounted: MakeMount, tmp_path: Path, lying: bool) -> None:
    mount = mounted(tmp_path / "disk", lying=lying)
    agent, promises = mount.point / "robot", Promises()
    make_folder(agent / "knowledge")
    make_folder(agent / "data")
    for seed in range(4):
        before = promises.count
        changing = threading.Thread(target=promises.keep_changing, args=(Knowledge(agent), seed))
        changing.start()
        while promises.count < before + 12 + seed and changing.is_alive():
            time.sleep(0.001)
        mount.forget(CUTS[seed % 3], seed)
        changing.join(LIMIT_S)
        mount.return_to_power()
        assert promises.count > before
        if lying:
            break
        knowledge = Knowledge(agent)
        knowledge.sweep()
        found = {entry.name: knowledge.read(entry.name) for entry in knowledge.entries()}
        assert promises.missing(found) == []
        assert not list((agent / "knowledge").rglob(f"{BEGUN}*"))
        promises.kept, promises.begun = found, None
    if lying:
        files = [path for path in agent.rglob("knowledge/*/*/*") if path.is_file()]
        found = {str(path.relative_to(agent / "knowledge")): path.read_text(errors="replace") for path in files}
        assert promises.missing(found), "the test can't see a loss"


def test_a_kill_in_the_middle_of_a_write_leaves_the_previous_content(tmp_path: Path) -> None:
    (tmp_path / "knowledge").mkdir()
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert process.stdout
        last = [int(process.stdout.readline()) for _ in range(7)][-1]
        os.kill(process.pid, signal.SIGKILL)
        last = max([last, *map(int, process.stdout.read().split())])
        process.wait(LIMIT_S)
        process.stdout.close()
        knowledge = Knowledge(tmp_path)
        knowledge.sweep()
        for number in range(last - 4, last + 1):
            content = knowledge.read(f"notes-{number % 5}/entry")
            n = int(content.split(" ", 1)[0])
            assert content == f"{n} " * 20_000
            assert n in (number, number + 5)
        assert not list((tmp_path / "knowledge").rglob(".*"))
