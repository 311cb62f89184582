"""Names that a person could take for each other."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.knowledge.lookalikes import all_look_alikes, find_look_alike

ALIKE = {
    "case": ("Notes", "notes"),
    "case of other letters": ("\u00c9t\u00e9", "\u00e9t\u00e9"),
    "sharp s": ("stra\u00dfe", "STRASSE"),
    "composed and not": ("caf\u00e9", "cafe\u0301"),
    "full width": ("\uff41", "a"),
    "a ligature": ("\ufb01le", "file"),
    "a Cyrillic letter": ("n\u043etes", "notes"),
    "all Cyrillic": ("\u0441\u043e\u0440", "cop"),
    "a Greek capital": ("\u0391.md", "A.md"),
    "a Cyrillic letter of the other case": ("\u041dome", "home"),
    "case of a letter that is like another only as a capital": ("\u041d\u0435\u0442", "\u043d\u0435\u0442"),
    "a dash": ("a\u2013b", "a-b"),
    "no dot": ("\u0131tem", "item"),
}


@pytest.mark.parametrize(("one", "other"), ALIKE.values(), ids=ALIKE.keys())
def test_they_are_found_from_both_sides(one: str, other: str) -> None:
    assert find_look_alike(one, ["else", other]) == other
    assert find_look_alike(other, ["else", one]) == one
    assert list(all_look_alikes(["else", one, other])) == [(other, one)]


@pytest.mark.parametrize(
    ("one", "other"),
    [("a1", "al"), ("notes", "note"), ("resume", "r\u00e9sum\u00e9"), ("\u043c\u0438\u0440", "mir"), ("a-b", "a_b")],
)
def test_different_names_stay_different(one: str, other: str) -> None:
    assert find_look_alike(one, [other]) is None


def test_a_name_is_no_look_alike_of_itself() -> None:
    assert find_look_alike("a", ["a", "b"]) is None


@given(st.text(max_size=20))
def test_every_change_of_case_or_form_is_seen(name: str) -> None:
    for other in (name.upper(), name.lower(), unicodedata.normalize("NFD", name), unicodedata.normalize("NFKC", name)):
        assert other == name or find_look_alike(name, [other]) == other
