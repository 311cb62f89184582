"""What exists is documented, and what is documented exists."""

import re
from pathlib import Path

import msgspec
import pytest
import typer

from axon.cli import app
from capsule.errors import AxonError
from hardware_profiles.profile import load, names
from runtime.abi.entries import ENTRY_CLASSES
from runtime.abi.errors import error_classes
from runtime.abi.summary import Summary
from runtime.abi.telemetry import TELEMETRY_CLASSES
from runtime.config import actuators, agent, cognet, policy, sections
from runtime.config.document import key_names
from runtime.config.drivers import DRIVERS
from runtime.config.size import format_size

DOCS = Path(__file__).parents[2] / "docs"
ROOT = DOCS.parent


def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def part(name: str, heading: str) -> str:
    """The text below one heading, up to the next of the same rank."""
    rank = heading.split(" ")[0]
    body = text(name).split(f"\n{heading}\n", 1)[1]
    return re.split(rf"\n#{{1,{len(rank)}}} ", body, maxsplit=1)[0]


def commands() -> dict[str, list[str]]:
    """Every command and its options, as they are."""
    root = typer.main.get_command(app)
    found = {}
    for name, command in root.commands.items():
        inner = getattr(command, "commands", None)
        for path, one in {f"{name} {k}": v for k, v in inner.items()}.items() if inner else [(name, command)]:
            found[path] = [option for p in one.params for option in p.opts if option.startswith("--")]
    return found


@pytest.mark.parametrize("name", commands())
def test_every_command_has_its_part_with_every_option(name):
    body = part("commands.md", f"## axon {name}")
    for option in set(commands()[name]) - {"--help"}:
        assert option in body, f"axon {name} {option}"


def test_no_command_or_option_is_documented_that_does_not_exist():
    documented = set(re.findall(r"^## axon (.+)$", text("commands.md"), re.MULTILINE))
    assert documented == set(commands())
    for name in documented:
        options = re.findall(r"(?<![\w-])--[a-z][a-z-]*", part("commands.md", f"## axon {name}"))
        assert set(options) <= set(commands()[name])


@pytest.mark.parametrize("name", commands())
def test_every_help_text_reads_like_a_manual(name):
    command = typer.main.get_command(app)
    for word in name.split():
        command = command.commands[word]
    assert "Example" in (command.help or "")
    assert len((command.help or "").split("\n\n")[0]) <= 90, "the first sentence stands in the list of commands"
    assert all(getattr(p, "help", "") for p in command.params)


TABLES = {
    "### `[agent]`": sections.Agent,
    "### `[broker]`": sections.Broker,
    "### `[[sensors]]`": sections.Sensor,
    "### `[media]`": sections.Media,
    "### `[log]`": sections.Log,
    "### `[brain]`": sections.Brain,
    "### `[capsule]`": sections.Capsule,
    "### `[engines.<role>]`": sections.Engine,
    "### `[policy]`": policy.Policy,
    '### `[policy."module.member"]`': (policy.Rule, policy.Bound),
    "### `[actuators.<name>]`": actuators.Actuator,
    "### `[engines.<role>]` of a cognet": cognet.EngineRole,
    "## cognet.toml": cognet._File,
}


def documented_keys(heading: str) -> set[str]:
    """The names in the first column of the tables below a heading."""
    body = part("configuration.md", heading).split("\nEach source")[0].split("\nEach provider")[0].split("\n### ")[0]
    rows = [row.split("|")[1] for row in body.splitlines() if row.startswith("| `")]
    return {key for row in rows for key in re.findall(r"`([a-z_]+)`", row)}


@pytest.mark.parametrize("heading", TABLES)
def test_every_configuration_key_is_documented_and_no_other(heading):
    elsewhere = {"options"} if heading in ("### `[[sensors]]`", "### `[engines.<role>]`") else set()
    elsewhere |= {"engines", "store"} if heading == "## cognet.toml" else set()
    elsewhere |= {"rules"} if heading == "### `[policy]`" else set()
    kinds = TABLES[heading] if isinstance(TABLES[heading], tuple) else (TABLES[heading],)
    assert documented_keys(heading) == {key for kind in kinds for key in key_names(kind)} - elsewhere


def test_every_table_of_the_file_is_documented():
    for name in (*agent.KNOWN, *agent.LATER):
        assert re.search(rf"`\[?\[?{name}[\].*`]", text("configuration.md")), name


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_source_is_documented_with_its_keys_and_rate(driver):
    rows = [
        row for row in part("configuration.md", "### `[[sensors]]`").splitlines() if row.startswith(f"| `{driver}`")
    ]
    for source, own in DRIVERS[driver].sources.items():
        (row,) = [row for row in rows if f'`"{source}' in row]
        assert f"| {DRIVERS[driver].fps:g} |" in row
        assert all(f"`{key}`" in row for key in key_names(own))


@pytest.mark.parametrize("name", names())
def test_every_profile_is_documented_with_its_values(name):
    (row,) = [line for line in text("configuration.md").splitlines() if line.startswith(f"| `{name}`")]
    profile = load(name)
    media = profile.media
    log, sizes = profile.log, (profile.log.seal_bytes, profile.log.min_free_bytes, media.max_bytes)
    for value in (log.commit_interval_ms, *map(format_size, sizes), media.store, media.max_age_s):
        assert f"| {value} |" in row
    assert f"`log.seal_age_s` is {log.seal_age_s:g}" in text("configuration.md")
    assert (log.retain_bytes, log.retain_age_s) == (0, 0)


@pytest.mark.parametrize("code", sorted(error_classes().keys() - {AxonError.code}))
def test_every_error_code_is_documented(code):
    kind = error_classes()[code]
    (row,) = [line for line in text("errors.md").splitlines() if line.startswith(f"| `{code}` |")]
    assert kind.hint in row


def test_no_error_code_is_documented_that_does_not_exist():
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", text("errors.md"), re.MULTILINE)) <= set(error_classes())


def family(name: str, known: str) -> bool:
    """Whether ``known`` names the type, whole or as ``cognet:tick:{start,complete}``."""
    head, _, last = name.rpartition(":")
    return f"`{name}`" in known or any(
        last in found.split(",") for found in re.findall(rf"`{re.escape(head)}:\{{([^}}]*)\}}`", known)
    )


@pytest.mark.parametrize("name", [*ENTRY_CLASSES, *TELEMETRY_CLASSES])
def test_every_type_of_entry_and_telemetry_is_documented(name):
    assert family(name, text("event-log.md"))


@pytest.mark.parametrize("name", msgspec.json.schema(Summary)["$defs"]["Summary"]["required"])
def test_every_figure_of_the_summary_is_documented(name):
    assert f"`{name}" in part("commands.md", "## axon run").replace("\n", " ")


def links() -> list[tuple[Path, str]]:
    pages = [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]
    return [(page, target) for page in pages for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))]


@pytest.mark.parametrize(("page", "target"), links(), ids=str)
def test_every_link_resolves(page, target):
    if target.startswith(("http://", "https://", "mailto:")):
        return
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    assert file.exists(), target
    if anchor:
        headings = re.findall(r"^#+ (.+)$", file.read_text("utf-8"), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
