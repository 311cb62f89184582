import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.config.lines import Lines

TEXT = '''\
format = 1            # 1
[agent]
name = "rover"
story = """
[broker]
url = "not a key"
"""

[[sensors]]
driver = "camera"
[[sensors]]           # 11
fps = 2
tags = [
  "a = 1",
  "[media]",
]
[sensors.deep]
x = 1
[ engines . "main one" ]
"quoted key" = 1
inline = { a = 1, b = { c = 2 } }
dotted.key = 3
quotes = """a \\""" [x]
b = 1 """"
nested = [ [ "]", '[', # ]
  { c = """
d = 2 """ } ] ]
"last" = \'\'\'
[no.header]
\'\'\'
[end]
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("format",), 1),
        (("agent",), 2),
        (("agent", "name"), 3),
        (("sensors", 0), 9),
        (("sensors", 0, "driver"), 10),
        (("sensors", 1), 11),
        (("sensors", 1, "fps"), 12),
        (("sensors", 1, "tags", 1), 13),
        (("sensors", 1, "deep", "x"), 18),
        (("engines", "main one", "quoted key"), 20),
        (("engines", "main one", "inline", "b", "c"), 21),
        (("engines", "main one", "dotted", "key"), 22),
        (("engines", "main one", "quotes"), 23),
        (("engines", "main one", "b"), 19),
        (("engines", "main one", "nested", 0, 2, "c"), 25),
        (("engines", "main one", "d"), 19),
        (("engines", "main one", "last"), 28),
        (("no", "header"), 1),
        (("end",), 31),
        (("agent", "missing"), 2),
        (("broker", "url"), 1),
        (("nowhere",), 1),
        (("engines",), 19),
        (("sensors",), 9),
    ],
)
def test_a_key_is_found_or_the_nearest_thing_around_it(key, line):
    tomllib.loads(TEXT)
    assert Lines(TEXT).of(key) == line


def test_a_long_value_is_passed_over_in_one_go():
    text = "a = [\n" + '  "x",\n' * 100_000 + "]\nb = 1\n"
    assert Lines(text).of(("b",)) == 100_003


@given(st.text(alphabet="ab[]{}=\"'\\\n.# 1,", max_size=200))
def test_no_text_that_is_toml_can_make_it_fail(text):
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert Lines(text).of(("a", "b")) >= 1
