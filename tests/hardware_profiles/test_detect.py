import os
from pathlib import Path

import pytest

from hardware_profiles.detect import board_names, detect
from hardware_profiles.profile import names


def board(root: Path, *compatible: str, place: str = "proc/device-tree/compatible") -> Path:
    path = root / place
    path.parent.mkdir(parents=True)
    path.write_bytes("".join(f"{name}\0" for name in compatible).encode())
    return root


@pytest.mark.parametrize("place", ["proc/device-tree/compatible", "sys/firmware/devicetree/base/compatible"])
def test_a_raspberry_pi_5_is_known_by_its_device_tree(tmp_path, place):
    root = board(tmp_path, "raspberrypi,5-model-b", "brcm,bcm2712", place=place)
    assert detect(root, machine="aarch64").name == "raspberry-pi-5"


def test_a_new_board_with_the_same_chip_is_known_by_the_chip(tmp_path):
    root = board(tmp_path, "raspberrypi,5-of-next-year", "brcm,bcm2712")
    assert detect(root, machine="aarch64").name == "raspberry-pi-5"


def test_an_undescribed_board_gets_the_generic_profile_of_its_processor(tmp_path):
    root = board(tmp_path, "acme,toaster")
    assert detect(root, machine="aarch64").name == "generic-arm64"


@pytest.mark.parametrize(("machine", "name"), [("x86_64", "generic-x86_64"), ("aarch64", "generic-arm64")])
def test_without_a_device_tree_the_processor_decides(tmp_path, machine, name):
    assert detect(tmp_path, machine=machine).name == name


def test_an_unheard_of_processor_still_gets_a_profile(tmp_path):
    assert detect(tmp_path, machine="riscv64").name == "generic-x86_64"


def test_this_machine_has_a_profile():
    assert detect().name in names()
    assert detect().machine == os.uname().machine


def test_a_device_tree_that_is_no_text_names_nothing_known(tmp_path):
    path = tmp_path / "proc/device-tree/compatible"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xff\xfe\0\0brcm\0")
    assert "brcm" in board_names(tmp_path)
    assert detect(tmp_path, machine="x86_64").name == "generic-x86_64"
