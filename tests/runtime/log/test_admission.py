"""What the error of a payload that doesn't fit tells its writer."""

from __future__ import annotations

import pytest

from runtime.abi.errors import EntryInvalid
from runtime.log.admission import validated


def test_the_fields_of_the_type_are_named() -> None:
    with pytest.raises(EntryInvalid) as caught:
        validated("cognet:output:field", {"channel": "steer", "value": 1})
    assert "The fields of cognet:output:field: channel, reading" in caught.value.hint
