"""``kernel.emit`` takes what a cognet has a reason to narrate, and forges nothing else."""

from __future__ import annotations

import json

import pytest

from runtime.abi import link
from runtime.abi.entries import ENTRY_CLASSES
from runtime.abi.telemetry import COGNET_MAY_EMIT, TELEMETRY_CLASSES

ALL = [*ENTRY_CLASSES, *TELEMETRY_CLASSES]
OTHERS = [
    "",
    "cognet:",
    "cognet:phase",
    "cognet:phase:",
    "cognet:log:shout",
    "Cognet:log:info",
    " cognet:log:info",
    "x",
]
DATA = {"LogLine": {"message": "x"}, "Span": {"span": 1, "name": "x"}}
EMITS = """
    import builtins, json
    @on("boot")
    async def first():
        for type_, data in json.loads({given!r}):
            try:
                result = kernel.emit(type_, data)
                builtins.seen.append((type_, "fine" if result is None else "waits"))
            except errors.AxonError as error:
                builtins.seen.append((type_, error.code))
    @loop
    async def think(wake): wake.stop()
"""


def data_of(type_: str) -> object:
    kind = TELEMETRY_CLASSES.get(type_)
    return DATA.get(kind.__name__, {}) if kind else {}


async def test_every_type_of_the_vocabulary_is_taken_or_refused_as_the_page_says(kernel_of, lines):
    given = json.dumps([(type_, data_of(type_)) for type_ in [*ALL, *OTHERS]])
    kernel = kernel_of(EMITS.format(given=given))
    await kernel.start()
    taken = [type_ for type_, outcome in lines if outcome == "fine"]
    assert taken == [type_ for type_ in TELEMETRY_CLASSES if type_.startswith(COGNET_MAY_EMIT)]
    assert {outcome for _, outcome in lines} == {"fine", "ENTRY_TYPE_UNKNOWN"}
    await kernel.until(lambda: len([e for e in kernel.told if e.type in taken]) >= len(taken))
    assert not kernel.all(link.Call)


FAMILIES = (
    *("cognet:stimulus:", "cognet:output:", "cognet:action:", "axon:"),
    *("cognet:tick:", "cognet:load:", "cognet:knowledge:", "kernel:", "sensor:"),
)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_family_but_the_three_may_be_emitted(family):
    assert any(type_.startswith(family) for type_ in ALL)
    assert not any(type_.startswith(COGNET_MAY_EMIT) for type_ in ALL if type_.startswith(family))
