from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardware_profiles.profile import load
from runtime.abi.errors import AgentNotFound, ConfigInvalid
from runtime.config.agent import AgentConfig, load_agent

GOOD = """\
format = 1

[agent]
name = "rover"

[broker]
url = "mqtts://robot:hunter2@broker.local:8883"
ca_file = "ca.pem"

[[sensors]]
driver = "camera"
source = "images:photos/*.jpg"
quality = 70

[[sensors]]
driver = "camera"
id = "rear"
transient = true

[[sensors]]
driver = "host"
fps = 1

[media]
store = "disk"
max_bytes = "2 GB"

[log]
sync_delay_ms = 5

[brain]
window_entries = 1000

[capsule]
memory = "64 MB"

[engines.main]
provider = "scripted"
model = "hello.toml"
"""


def write(folder: Path, text: str) -> Path:
    (folder / "axon.toml").write_text(text)
    (folder / "ca.pem").write_text("")
    return folder


def loaded(folder: Path, text: str, profile: str = "generic-x86_64") -> AgentConfig:
    return load_agent(write(folder, text), load(profile))


def refused(folder: Path, text: str) -> ConfigInvalid:
    with pytest.raises(ConfigInvalid) as caught:
        loaded(folder, text)
    return caught.value


def test_a_whole_file_is_read(tmp_path):
    config = loaded(tmp_path, GOOD)
    assert config.agent.name == "rover"
    assert config.agent.cognet == "reflex"
    assert config.media.max_bytes == 2 * 10**9
    assert config.capsule.memory == 64 * 10**6
    assert config.brain.window_entries == 1000
    assert config.engines["main"].model == "hello.toml"
    assert [sensor.name for sensor in config.sensors] == ["camera", "camera.rear", "host"]


def test_the_smallest_file_is_complete(tmp_path):
    config = loaded(tmp_path, 'format = 1\nagent.name = "r"')
    assert config.broker.url == "private"
    assert config.sensors == ()
    assert (config.brain.window_entries, config.brain.heartbeat_s, config.brain.max_overlap) == (20_000, 2.0, 64)


def test_a_driver_brings_its_own_defaults(tmp_path):
    camera, rear, host = loaded(tmp_path, GOOD).sensors
    assert (camera.channel, camera.fps, camera.options) == ("camera", 30, {"quality": 70})
    assert (rear.source, rear.transient) == ("synthetic", True)
    assert (host.channel, host.source, host.fps, host.options) == ("host", "psutil", 1, {})


def test_paths_begin_at_the_agents_folder(tmp_path):
    config = loaded(tmp_path, GOOD)
    assert config.sensors[0].source == f"images:{tmp_path}/photos/*.jpg"
    assert config.broker.ca_file == str(tmp_path / "ca.pem")


def test_the_profile_fills_what_the_file_does_not_say(tmp_path):
    config = loaded(tmp_path, 'format = 1\nagent.name = "r"\n[media]\nstore = "disk"\n', "raspberry-pi-5")
    assert config.log.commit_interval_ms == 100
    assert config.media.store == "disk"
    assert config.media.max_bytes == 256_000_000
    assert config.origins["log.commit_interval_ms"].source == "profile raspberry-pi-5"
    assert config.origins["media.max_age_s"].source == "profile raspberry-pi-5"


def test_every_value_tells_where_it_came_from(tmp_path):
    origins = loaded(tmp_path, GOOD).origins
    assert origins["agent.name"].source == "axon.toml:4"
    assert origins["agent.cognet"].source == "default"
    assert origins["sensors[1].id"].source == "axon.toml:17"
    assert origins["sensors[1].fps"].source == "driver camera"
    assert origins["sensors[0].quality"].source == "axon.toml:13"
    assert origins["engines.main.model"].source == "axon.toml:39"


def test_no_origin_and_no_error_repeats_a_password(tmp_path):
    config = loaded(tmp_path, GOOD)
    assert config.origins["broker.url"].value == "mqtts://robot:***@broker.local:8883"
    assert "hunter2" not in str(refused(tmp_path, GOOD.replace("mqtts:", "http:")))
    assert "hunter2" not in str(refused(tmp_path, GOOD.replace("url = ", "urls = ")))
    assert "hunter2" not in str(
        refused(tmp_path, GOOD.replace('"mqtts://robot:hunter2', '["mqtts://robot:hunter2').replace('8883"', '8883"]'))
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "expected"),
    [
        ("format = 1", "", 1, "format", "format = 1"),
        ("format = 1", "format = 2", 1, "format", "format = 1"),
        ("format = 1", "format = true", 1, "format", "format = 1"),
        ('name = "rover"', "", 3, "agent.name", "to be given"),
        ('"rover"', '"ro/ver"', 4, "agent.name", "letters"),
        ('"rover"', '"rover\\n"', 4, "agent.name", "letters"),
        ('"rover"', "7", 4, "agent.name", "letters"),
        ("8883", "99999", 7, "broker.url", "mqtts://"),
        ("broker.local", "", 7, "broker.url", "mqtts://"),
        ('"ca.pem"', '"missing.pem"', 8, "broker.ca_file", "exists"),
        ("quality = 70", "quality = 0", 13, "sensors[0].quality", "JPEG"),
        ("quality = 70", "quality = []", 13, "sensors[0].quality", "JPEG"),
        ("quality = 70", "width = 640", 13, "sensors[0].width", "quality"),
        ('id = "rear"', 'width = "wide"', 17, "sensors[1].width", "pixels"),
        ("broker.local:8883", "broker.local/x", 7, "broker.url", "mqtts://"),
        ('"images:photos/*.jpg"', '"images:"', 12, "sensors[0].source", "images:<path>"),
        ('"images:photos/*.jpg"', '"/dev/video0"', 12, "sensors[0].source", "synthetic"),
        ('id = "rear"', 'id = ""', 17, "sensors[1].id", "letters"),
        ('driver = "host"', 'driver = "nose"', 21, "sensors[2].driver", "microphone"),
        ('driver = "host"', 'channel = "host"', 20, "sensors[2].driver", "microphone"),
        ("fps = 1", "fps = 0", 22, "sensors[2].fps", "messages a second"),
        ("fps = 1", "fps = inf", 22, "sensors[2].fps", "finite"),
        ("fps = 1", 'channel = "camera"', 22, "sensors[2].channel", "of its own"),
        ('"disk"', '"tape"', 25, "media.store", '"disk" or "memory"'),
        ('"2 GB"', '"lots"', 26, "media.max_bytes", '"2 GB"'),
        ('"2 GB"', "3", 26, "media.max_bytes", "at least"),
        ("sync_delay_ms = 5", "sync_delay_ms = nan", 29, "log.sync_delay_ms", "finite"),
        ("sync_delay_ms = 5", "sync_delayms = 1", 29, "log.sync_delayms", "sync_delay_ms"),
        ("window_entries = 1000", "window_entries = 1.5", 32, "brain.window_entries", "whole number"),
        ("[capsule]", "[mapping]", 34, "mapping", "serve"),
        ("[capsule]", "[capsul]", 34, "capsul", "capsule"),
        ("[engines.main]", "[engines]", 38, "engines.provider", "a table"),
        ('provider = "scripted"', 'provider = "sybil"', 38, "engines.main.provider", "scripted"),
        ('provider = "scripted"', "", 37, "engines.main.provider", "scripted"),
        ('model = "hello.toml"', 'model = ""', 39, "engines.main.model", "the name or path"),
        ('model = "hello.toml"', "slots = 0", 39, "engines.main.slots", "1 to 256"),
        ('model = "hello.toml"', "slot = 2", 39, "engines.main.slot", "slots"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_line_key_and_expectation(tmp_path, old, new, line, key, expected):
    assert old in GOOD
    tail = GOOD.rindex(old) if old in ("fps = 1",) else GOOD.index(old)
    error = refused(tmp_path, GOOD[:tail] + new + GOOD[tail + len(old) :])
    assert error.facts["file"] == str(tmp_path / "axon.toml")
    assert (error.facts["line"], error.facts["key"]) == (line, key)
    assert expected in error.facts["expected"]
    assert f"{tmp_path / 'axon.toml'}:{line}: {key}: " in str(error)


@pytest.mark.parametrize("name", ["mapping", "redact"])
def test_tables_of_later_releases_are_refused_rather_than_ignored(tmp_path, name):
    assert "in force" in refused(tmp_path, f'format = 1\nagent.name = "r"\n[{name}]\n').hint


def test_a_misspelt_key_gets_the_right_one_suggested(tmp_path):
    assert "`commit_interval_ms`" in refused(tmp_path, GOOD.replace("sync_delay_ms", "comit_interval_ms")).hint


@pytest.mark.parametrize(
    "text",
    ["[agent", "a = 1\na = 2", "x = ", "\x00", "a = " + "[" * 3000, "n = " + "9" * 5000, "a" + ".a" * 2_000 + " = 1"],
)
def test_what_is_no_toml_is_refused_with_its_line(tmp_path, text):
    error = refused(tmp_path, "format = 1\n" + text)
    assert error.facts["line"] >= 1
    assert error.facts["expected"] == "TOML"


def test_a_file_without_end_is_not_read_to_its_end(tmp_path):
    (tmp_path / "axon.toml").symlink_to("/dev/zero")
    with pytest.raises(ConfigInvalid, match="at most"):
        load_agent(tmp_path, load("generic-x86_64"))


def test_what_is_no_utf8_is_refused_with_its_line(tmp_path):
    (tmp_path / "axon.toml").write_bytes(b"format = 1\n# caf\xe9\n")
    with pytest.raises(ConfigInvalid, match=r"axon\.toml:2: expected UTF-8"):
        load_agent(tmp_path, load("generic-x86_64"))


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_a_folder_without_the_file_is_no_agent(tmp_path, make):
    make(tmp_path / "axon.toml")
    with pytest.raises(AgentNotFound, match="there is no agent"):
        load_agent(tmp_path, load("generic-x86_64"))


VALUES = st.recursive(
    st.booleans() | st.integers(-(2**70), 2**70) | st.sampled_from(['"x"', '"2 GB"', "nan", "1.5", "1979-05-27", "''"]),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(map(toml, items))}]"),
    max_leaves=4,
)
KEYS = st.sampled_from(["name", "url", "driver", "fps", "store", "max_bytes", "memory", "heartbeat_s", "main", "zzz"])
TABLES = st.sampled_from(["agent", "broker", "sensors", "media", "log", "brain", "capsule", "engines", "engines.main"])


def toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(TABLES, st.dictionaries(KEYS, VALUES, max_size=3), max_size=4), st.booleans())
def test_no_toml_does_more_than_be_refused(tmp_path, tables, arrays):
    text = "format = 1\n"
    for name, keys in tables.items():
        text += f"[[{name}]]\n" if arrays and name == "sensors" else f"[{name}]\n"
        text += "".join(f"{key} = {toml(value)}\n" for key, value in keys.items())
    try:
        loaded(tmp_path, text)
    except ConfigInvalid as error:
        line = error.facts["line"]
    else:
        line = 1
    assert 1 <= line <= text.count("\n") + 1
