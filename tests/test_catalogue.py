"""Reading data files: entries like others, and numbers in their ranges."""

import math

import pytest

from triosim.catalogue import check_keys, inherited, number, positive, read_data, source
from triosim.errors import ConfigError

ENTRIES = {
    "base": {"a": 1, "table": {"x": 1, "y": 2}, "list": [1, 2]},
    "middle": {"like": "base", "b": 2, "table": {"y": 3}},
    "end": {"like": "middle", "list": [3]},
}


def test_an_entry_takes_what_it_does_not_give_from_all_that_it_is_like():
    assert inherited("f.toml", ENTRIES, "end") == {
        "a": 1, "b": 2, "table": {"x": 1, "y": 3}, "list": [3],
    }  # fmt: skip
    assert ENTRIES["base"]["table"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ({"a": {"like": "b"}}, "like = b: must be another entry"),
        ({"a": {"like": "a"}}, "like = a: must be another entry"),
        ({"a": {"like": "b"}, "b": {"like": "a"}}, r"f.toml \[b\] like = a: must be another"),
    ],
)
def test_an_entry_like_itself_or_nothing(entries, problem):
    with pytest.raises(ConfigError, match=problem):
        inherited("f.toml", entries, "a")


@pytest.mark.parametrize("value", ["1", True, None, -1, 3, math.nan, math.inf])
def test_what_is_no_number_in_the_range(value):
    with pytest.raises(ConfigError, match=f"f a = {value}: must be a number"):
        number("f", {"a": value}, "a", most=2)


def test_numbers():
    assert number("f", {"a": 2}, "a", most=2) == 2.0
    assert number("f", {"a": 0}, "a") == 0.0
    with pytest.raises(ConfigError, match="a = 0: must be above 0"):
        positive("f", {"a": 0}, "a")
    with pytest.raises(ConfigError, match="f a: is missing"):
        positive("f", {}, "a")


def test_keys_and_sources():
    check_keys("f", {"a": 1, "b": 2}, ("a",), "b", "c")
    with pytest.raises(ConfigError, match="f a: is missing"):
        check_keys("f", {"b": 2}, ("a",), "b")
    with pytest.raises(ConfigError, match="f d: no such entry; known are a, b"):
        check_keys("f", {"a": 1, "d": 2}, ("a",), "b")
    assert source("f", {"a": "here"}, "a") == "here"
    for said in ({}, {"a": " "}, {"a": 1}):
        with pytest.raises(ConfigError, match="f sources of a: must say where"):
            source("f", said, "a")


def test_data_files_are_found_by_package():
    assert "h100-sxm" in read_data("triosim.hardware", "gpus.toml")
