"""What one cut did: what had left the machine, held against what came back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from plug.guest import ROOT
from plug.recovered import Recovered, source_key

CLEAN_OR_MENDED = (0, 1)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """``lost`` are acknowledgements that the log doesn't keep, ``corrupt`` what is wrong in what it does keep."""

    acknowledged: int
    lost: list[str]
    corrupt: list[str]


def judge(image: bytes | bytearray, lines: Iterable[str], folder: Path) -> Verdict:
    """Mend the file system as a boot would, recover the log with the product, compare."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    disk = folder / "disk.ext4"
    disk.write_bytes(image)
    acknowledged = [json.loads(line) for line in lines]
    acknowledged = [ack for ack in acknowledged if ack["kind"] in ("said", "output", "committed")]
    if problem := _extract(disk, folder):
        return Verdict(acknowledged=len(acknowledged), lost=[], corrupt=[problem])
    sessions = sorted((folder / "agent" / "data" / "sessions").glob("*"))
    if not sessions:
        return Verdict(
            acknowledged=len(acknowledged), lost=["everything: no session"] if acknowledged else [], corrupt=[]
        )
    done = subprocess.run(
        [sys.executable, "-P", "-m", "plug.recovered", str(sessions[-1])],
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    if done.returncode:
        return Verdict(acknowledged=len(acknowledged), lost=[], corrupt=[done.stderr.decode()[-1500:]])
    recovered = msgspec.json.decode(done.stdout, type=Recovered)
    return Verdict(
        acknowledged=len(acknowledged),
        lost=list(_lost(acknowledged, recovered)),
        corrupt=list(_corrupt(recovered)),
    )


def _extract(disk: Path, folder: Path) -> str:
    """The agent's folder out of the image; what was wrong with the file system, if anything."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    env = os.environ | {"PATH": path}
    mended = subprocess.run(["e2fsck", "-fy", str(disk)], capture_output=True, text=True, env=env)
    if mended.returncode not in CLEAN_OR_MENDED:
        return f"the file system: {mended.stdout[-500:]}"
    dumped = subprocess.run(
        ["debugfs", "-R", f"rdump /agent {folder}", str(disk)], capture_output=True, text=True, env=env
    )
    return "" if (folder / "agent").is_dir() else f"no agent on the disk: {dumped.stderr[-500:]}"


def _lost(acknowledged: list[dict[str, Any]], recovered: Recovered) -> Iterator[str]:
    for ack in acknowledged:
        what = ack["what"]
        if ack["kind"] == "said" and recovered.texts.get(ack["seq"]) != what:
            yield f"said {ack['seq']} {what!r}, recovered {recovered.texts.get(ack['seq'])!r}"
        elif ack["kind"] == "output":
            data = dict(recovered.outputs.get(what["seq"], {}))
            data.pop("channel", None)
            if {"seq": what["seq"], **data} != what:
                yield f"output {what}, recovered {data}"
        elif ack["kind"] == "committed":
            mark = recovered.marks.get(source_key(ack["channel"], what.get("id"), what["epoch"]))
            if mark is None or mark < what["seq"]:
                yield f"committed {ack['channel']} {what}, recovered {mark}"


def _corrupt(recovered: Recovered) -> Iterator[str]:
    if not recovered.ok:
        yield f"the log: {recovered.why}"
    if recovered.set_aside:
        yield f"the log was damaged: {recovered.set_aside}"
    if recovered.repeated:
        yield f"counters came twice: {recovered.repeated}"
    if recovered.media_missing:
        yield f"{recovered.media_missing} of the newest media an entry names aren't there"
    if not recovered.again:
        yield "a second start found something else than the first"
