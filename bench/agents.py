"""Agents made for a measurement, and runs of the real command on them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROVER = ROOT / "examples" / "rover"
COGNETS = Path(__file__).parent / "cognets"


def scratch() -> Path:
    """A folder on this disk for what a measurement needs."""
    parent = ROOT / "build" / "bench"
    parent.mkdir(parents=True, exist_ok=True)
    return parent


@contextmanager
def agent(cognet: str | None = None, *, log: str = "", brain: str = "", sensors: bool = False) -> Iterator[Path]:
    """A copy of the rover (``cognet`` None), or a bare agent with a cognet of this folder, on this disk."""
    with tempfile.TemporaryDirectory(dir=scratch()) as name:
        folder = Path(name) / "agent"
        if cognet is None:
            shutil.copytree(ROVER, folder, ignore=shutil.ignore_patterns("data"))
            if not sensors:
                (folder / "axon.toml").write_text(_bare("reflex", log, brain))
            elif log:
                text = (folder / "axon.toml").read_text()
                (folder / "axon.toml").write_text(_set_log(text, log))
        else:
            folder.mkdir()
            shutil.copytree(COGNETS / cognet, folder / "cognet")
            (folder / "axon.toml").write_text(_bare("cognet", log, brain))
        yield folder


def _bare(cognet: str, log: str, brain: str) -> str:
    return f'format = 1\n[agent]\nname = "bench"\ncognet = "{cognet}"\n[log]\n{log}\n[brain]\n{brain}\n'


def _set_log(text: str, log: str) -> str:
    """Put a line into [log], which may stand in the file already."""
    if "\n[log]\n" in text:
        return text.replace("\n[log]\n", f"\n[log]\n{log}\n")
    return f"{text}\n[log]\n{log}\n"


def run(folder: Path, seconds: float, *options: str) -> dict[str, Any]:
    """Run the agent as a user would and read its summary."""
    summary = folder / "summary.json"
    command = [
        sys.executable,
        "-P",
        "-m",
        "axon",
        "run",
        str(folder),
        "--for",
        f"{seconds}s",
        "--summary",
        str(summary),
    ]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=seconds + 120)
    if done.returncode:
        raise RuntimeError(f"axon run failed: {done.stdout[-500:]}{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(summary.read_text())
    return result


def outputs(folder: Path, channel: str) -> list[Any]:
    """The text outputs of a channel that the log holds, decoded from JSON."""
    command = [sys.executable, "-P", "-m", "axon", "log", "show", str(folder), "--json", "--type", "cognet:output:text"]
    done = subprocess.run([*command, "--channel", channel], cwd=ROOT, capture_output=True, text=True, check=True)
    return [json.loads(json.loads(line)["data"]["content"]) for line in done.stdout.splitlines() if line]
