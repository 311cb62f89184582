"""When two different names would look the same to a person: by case, by Unicode's normal forms, or by their letters."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

# Greek and Cyrillic letters, and other marks, by the ASCII character that they look like.
_LIKE = {
    "A": "\u0391\u0410",
    "B": "\u0392\u0412",
    "C": "\u0421",
    "E": "\u0395\u0415",
    "H": "\u0397\u041d",
    "I": "\u0399\u0406\u04c0",
    "J": "\u0408",
    "K": "\u039a\u041a",
    "M": "\u039c\u041c",
    "N": "\u039d",
    "O": "\u039f\u041e",
    "P": "\u03a1\u0420",
    "Q": "\u051a",
    "S": "\u0405",
    "T": "\u03a4\u0422",
    "W": "\u051c",
    "X": "\u03a7\u0425",
    "Y": "\u03a5\u0423",
    "Z": "\u0396",
    "a": "\u03b1\u0430\u0251",
    "c": "\u0441",
    "d": "\u0501",
    "e": "\u0435",
    "g": "\u0261",
    "h": "\u04bb",
    "i": "\u03b9\u0456\u0131",
    "j": "\u0458",
    "k": "\u03ba\u043a",
    "l": "\u04cf",
    "o": "\u03bf\u043e",
    "p": "\u03c1\u0440",
    "q": "\u051b",
    "s": "\u0455",
    "u": "\u03c5",
    "v": "\u03bd",
    "w": "\u051d",
    "x": "\u03c7\u0445",
    "y": "\u03b3\u0443",
    "-": "\u2010\u2013\u2014\u2015\u2212",
    "'": "\u2018\u2019\u02bc",
}
_LOOKS = str.maketrans({letter: like for like, letters in _LIKE.items() for letter in letters})


def find_look_alike(name: str, others: Iterable[str]) -> str | None:
    """The first of ``others`` that looks like ``name`` and isn't it."""
    shapes = _shapes(name)
    return next((other for other in others if other != name and _are_alike(shapes, _shapes(other))), None)


def all_look_alikes(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Every name that looks like one before it, with that one."""
    seen: dict[tuple[int, str], str] = {}
    for name in names:
        shapes = list(enumerate(_shapes(name)))
        if other := next((seen[shape] for shape in shapes if shape in seen), None):
            yield name, other
        seen.update((shape, name) for shape in shapes if shape not in seen)


def _are_alike(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return one[0] == other[0] or one[1] == other[1]


def _shapes(name: str) -> tuple[str, str]:
    """The name without case and without normal forms, and the same with the letters that it seems to have.

    Two, since letters look alike in one case and not in the other: a capital Cyrillic "en" is an H, a small one isn't.
    """
    if name.isascii():
        folded = name.lower()
        return folded, folded
    return _folded(name), _folded(unicodedata.normalize("NFKD", name).translate(_LOOKS))


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
