import pytest

from hardware_profiles import profile
from hardware_profiles.profile import Cores, ProfileInvalid, load, names


def test_the_promised_profiles_are_shipped():
    assert {"generic-x86_64", "generic-arm64", "raspberry-pi-5"} <= set(names())


@pytest.mark.parametrize("name", names())
def test_every_shipped_profile_loads(name):
    assert load(name).name == name


@pytest.mark.parametrize("name", ["generic-arm64", "raspberry-pi-5"])
def test_a_board_on_a_card_holds_commits_and_keeps_frames_off_the_card(name):
    found = load(name)
    assert found.log.commit_interval_ms == 100
    assert found.media.store == "memory"


def test_a_pc_commits_at_once():
    assert load("generic-x86_64").log.commit_interval_ms == 0


def test_the_raspberry_pi_watchdog_stays_below_its_hardware_limit():
    assert 0 < load("raspberry-pi-5").watchdog.timeout_s < 15


@pytest.mark.parametrize("name", ["", "toaster", "../pyproject", "generic-x86_64.toml"])
def test_an_unknown_profile_is_refused_with_the_names_there_are(name):
    with pytest.raises(ProfileInvalid, match="raspberry-pi-5"):
        load(name)


@pytest.mark.parametrize("text", ["format = 2", "not toml [", "format = 1\nname = 3"])
def test_a_broken_profile_is_refused(tmp_path, monkeypatch, text):
    (tmp_path / "odd.toml").write_text(text)
    monkeypatch.setattr(profile, "FOLDER", tmp_path)
    with pytest.raises(ProfileInvalid, match="odd"):
        load("odd")


def test_a_profile_must_carry_the_name_of_its_file(tmp_path, monkeypatch):
    text = (profile.FOLDER / "generic-arm64.toml").read_text()
    (tmp_path / "odd.toml").write_text(text)
    monkeypatch.setattr(profile, "FOLDER", tmp_path)
    with pytest.raises(ProfileInvalid, match="calls itself 'generic-arm64'"):
        load("odd")


def test_only_cores_that_exist_are_pinned():
    cores = Cores(kernel=[0, 1], engines=[2, 3])
    assert cores.usable("kernel", {0}) == {0}
    assert cores.usable("engines", {0, 1}) == frozenset()
    assert cores.usable("sensors", {0, 1}) == frozenset()
