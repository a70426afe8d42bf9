"""Protocols of a link: by hand, by trying every pair, against data; bounds and damaged files."""

from __future__ import annotations

import copy
import math
import statistics
import tomllib
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import collectives, collectives_fit
from triosim import ConfigError
from triosim.network.protocol import (
    Calibration,
    Candidate,
    Protocol,
    calibration_names,
    choose,
    load_calibration,
    read_calibrations,
    switch_candidates,
)

OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
SLOW = Protocol(name="ll", payload=0.5, efficiency=0.5, base_s=1e-6, step_s=1e-6)
FAST = Protocol(name="simple", payload=1.0, efficiency=0.8, base_s=20e-6, step_s=5e-6)
SUMS = Protocol(name="in_network", payload=1.0, efficiency=0.625, base_s=40e-6, step_s=0.0)
LINK = Calibration(name="test", protocols=(SLOW, FAST), in_network=SUMS, own_block=0.5, sources={})
B = 100e9


def test_a_small_message_by_hand():
    """Eight ranks, 8 kB: 14 steps of LL, 14 blocks of 1 kB and half of one's own, at B/4."""
    choice = choose(LINK, switch_candidates("all-reduce", 8, 8e3), B)
    assert choice.protocol is SLOW
    assert choice.latency_s == pytest.approx(1e-6 + 14e-6)
    assert choice.factor == pytest.approx(14.5 / 14 * 4)
    assert choice.time_s(B) == pytest.approx(15e-6 + 14.5e3 / 25e9)


def test_a_large_message_by_hand():
    """The same of 8 GB moves by Simple: 14 blocks of 1 GB and a half, at 0.8 B."""
    choice = choose(LINK, switch_candidates("all-reduce", 8, 8e9), B)
    assert choice.protocol is FAST
    assert choice.time_s(B) == pytest.approx(20e-6 + 14 * 5e-6 + 14.5e9 / 80e9)


def test_switches_that_add_up_move_every_array_once_and_every_sum_once():
    """9/8 of 8 GB at 0.625 B is less than 14.5/8 of it at 0.8 B."""
    choice = choose(LINK, switch_candidates("all-reduce", 8, 8e9, in_network=True), B)
    assert choice.candidate.algorithm == "in-network"
    assert choice.time_s(B) == pytest.approx(40e-6 + 9e9 / 62.5e9)


def test_all_to_all_messages_leave_together():
    choice = choose(LINK, switch_candidates("all-to-all", 8, 8e9), B)
    assert choice.time_s(B) == pytest.approx(20e-6 + 5e-6 + 7.5e9 / 80e9)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", calibration_names())
def test_one_rank_has_nothing_to_move(name, operation):
    choice = choose(load_calibration(name), switch_candidates(operation, 1, 1e9), B)
    assert (choice.protocol, choice.latency_s, choice.factor) == (None, 0.0, 1.0)
    assert choice.time_s(B) == 0


@given(
    name=st.sampled_from(calibration_names()),
    operation=st.sampled_from(OPERATIONS),
    ranks=st.integers(2, 100_000),
    size_bytes=st.floats(0, 1e13),
    rate=st.floats(1e9, 2e12),
)
def test_the_choice_is_the_least_of_all_pairs(name, operation, ranks, size_bytes, rate):
    calibration = load_calibration(name)
    reduces = calibration.in_network is not None
    candidates = switch_candidates(operation, ranks, size_bytes, in_network=reduces)
    choice = choose(calibration, candidates, rate)
    assert choice.factor >= 1
    assert choice.latency_s > 0
    times = []
    for candidate in candidates:
        inside = candidate.algorithm == "in-network"
        for p in (calibration.in_network,) if inside else calibration.protocols:
            carried = candidate.link_bytes + calibration.own_block * candidate.own_bytes
            reached = rate * p.efficiency * p.payload
            times.append(carried / reached + p.base_s + p.step_s * candidate.steps)
    assert choice.time_s(rate) == pytest.approx(min(times), rel=1e-9)


@given(
    name=st.sampled_from(calibration_names()),
    operation=st.sampled_from(OPERATIONS),
    ranks=st.integers(2, 100_000),
    sizes=st.lists(st.floats(1, 1e13), min_size=2, max_size=2),
)
def test_time_grows_with_size_and_bandwidth_with_it(name, operation, ranks, sizes):
    """Twice as much never takes less, nor more than twice as long: busbw only rises."""
    small, large = sorted(sizes)

    def time_s(size):
        return choose(load_calibration(name), switch_candidates(operation, ranks, size), B).time_s(
            B
        )

    assert time_s(small) <= time_s(large) * (1 + 1e-12)
    assert time_s(large) / large <= time_s(small) / small * (1 + 1e-12)


def test_a_link_is_never_driven_above_its_bandwidth():
    for name in calibration_names():
        calibration = load_calibration(name)
        parts = [*calibration.protocols, *filter(None, [calibration.in_network])]
        assert 0 <= calibration.own_block <= 1
        for part in parts:
            assert 0 < part.payload <= 1
            assert 0 < part.efficiency <= 1
            assert part.base_s >= 0
            assert part.step_s >= 0
        assert all(text.strip() for text in calibration.sources.values())


@pytest.mark.parametrize("name", calibration_names())
def test_payloads_are_those_of_nccl(name):
    """LL sends 4 bytes of flag with 4 of data, LL128 8 with 120."""
    payload = {p.name: p.payload for p in load_calibration(name).protocols}
    expected = {"ll": 4 / 8, "ll128": 120 / 128, "simple": 1}
    assert payload == {key: expected[key] for key in payload}


def test_the_kinds_of_link_that_machines_name():
    assert {"nvlink", "nvlink3", "nvlink4", "nvlink5", "pcie", "infiniband", "efa"} <= set(
        calibration_names()
    )
    reducing = {n for n in calibration_names() if load_calibration(n).in_network}
    assert reducing == {"nvlink", "nvlink4", "nvlink5"}


def test_an_unknown_kind_of_link():
    with pytest.raises(ConfigError, match=r"calibration token-ring: no such kind.*nvlink4"):
        load_calibration("token-ring")


def test_links_without_sums_in_the_network_fall_back_on_the_ring():
    plain = replace(LINK, in_network=None)
    both = switch_candidates("all-reduce", 8, 8e9, in_network=True)
    assert choose(plain, both, B).candidate.algorithm == "ring"
    with pytest.raises(ConfigError, match="algorithm in-network: test links cannot carry it"):
        choose(plain, both[1:], B)
    with pytest.raises(ConfigError, match="algorithm none"):
        choose(plain, [], B)


def test_bad_numbers_are_named():
    ring = switch_candidates("all-gather", 4, 1e6)
    for rate in (0, -1, math.inf, math.nan):
        with pytest.raises(ConfigError, match="bytes_per_s"):
            choose(LINK, ring, rate)
    for field, value in (("steps", -1), ("link_bytes", math.nan), ("own_bytes", math.inf)):
        numbers = {"steps": 1, "link_bytes": 1.0, "own_bytes": 0.0, field: value}
        with pytest.raises(ConfigError, match=f"{field}.*must be a number from 0"):
            Candidate(algorithm="ring", **numbers)
    with pytest.raises(ConfigError, match="steps 0: must be at least 1 where bytes move"):
        Candidate(algorithm="ring", steps=0, link_bytes=1.0)
    with pytest.raises(ConfigError, match="ranks 0"):
        switch_candidates("all-gather", 0, 1e6)
    with pytest.raises(ConfigError, match="operation gossip: must be one of all-reduce"):
        switch_candidates("gossip", 2, 1e6)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d.pop("own_block"), r"\[nvlink4\] own_block: is missing"),
        (lambda d: d.update(own_block=1.5), r"own_block = 1.5: must be a number from 0 to 1"),
        (lambda d: d["ll"].pop("step_us"), r"\[nvlink4.ll\] step_us: is missing"),
        (lambda d: d["ll"].update(payload="half"), "payload = half: must be a number"),
        (lambda d: d["ll"].update(payload=True), "payload = True: must be a number"),
        (lambda d: d["simple"].update(efficiency=1.01), "efficiency = 1.01: .* from 0 to 1"),
        (lambda d: d["simple"].update(efficiency=0), "efficiency = 0: must be above 0"),
        (lambda d: d["in_network"].update(base_us=-1), "base_us = -1: must be a number from 0"),
        (lambda d: d["ll"].update(base_us=math.inf), "base_us = inf: must be a number from 0"),
        (lambda d: d["sources"].update(step_s=" "), "sources of step_s: must say where"),
        (lambda d: d.pop("sources"), "sources: is missing"),
        (lambda d: d.update(ll256={}), "ll256: no such entry"),
        (lambda d: [d.pop(p) for p in ("ll", "ll128", "simple")], "needs at least one of ll"),
    ],
)
def test_a_damaged_data_file_is_named(damage, message):
    path = files("triosim") / "hardware" / "data" / "protocols.toml"
    entries = copy.deepcopy(tomllib.loads(path.read_text(encoding="utf-8")))
    damage(entries["nvlink4"])
    with pytest.raises(ConfigError, match=message):
        read_calibrations(entries)


def test_a_fit_recovers_the_numbers_that_made_the_data():
    rows = [
        _row(operation, ranks, 2**exponent)
        for ranks in (2, 4, 8)
        for exponent in range(10, 32)
        for operation in ("all-reduce", "all-gather")
    ]
    start = replace(LINK, in_network=None, own_block=0.4)
    start = replace(
        start,
        protocols=tuple(
            replace(p, base_s=p.base_s * 1.5, step_s=p.step_s / 1.5) for p in start.protocols
        ),
    )
    found = collectives_fit.fit(rows, start)
    errors = [abs(row.predict_s(found) / row.seconds - 1) for row in rows]
    assert statistics.median(errors) < 0.02
    assert found.protocols[1].efficiency == pytest.approx(FAST.efficiency, rel=0.03)


def _row(operation, ranks, size_bytes):
    candidates = switch_candidates(operation, ranks, size_bytes)
    return collectives_fit.Row(
        machine="made",
        calibration="test",
        operation=operation,
        ranks=ranks,
        nodes=1,
        size_bytes=size_bytes,
        seconds=choose(LINK, candidates, B).time_s(B),
        bytes_per_s=B,
        candidates=candidates,
    )


def test_without_data_the_benchmark_says_so(monkeypatch, capsys):
    monkeypatch.setattr(collectives, "DATA", Path("nowhere/nccl_collectives.csv"))
    collectives.main([])
    expected = "no nccl_collectives.csv beside the repository: no collectives to judge\n"
    assert capsys.readouterr().out == expected


@pytest.fixture(scope="module")
def rows(shared):
    path = shared / "published" / "nccl_collectives.csv"
    if not path.is_file():
        pytest.skip("the published collectives are not in the folder of reference data")
    return collectives_fit.read_rows(path)


def _within_target(errors):
    absolute = sorted(abs(error) for error in errors)
    return statistics.median(absolute) <= 0.15 and absolute[int(0.9 * len(absolute))] <= 0.35


def test_operations_that_were_not_fitted_are_predicted(rows):
    """Reduce-scatter and all-to-all of all machines, from 1 MiB on."""
    unseen = [
        row.predict_s(load_calibration(row.calibration)) / row.seconds - 1
        for row in rows
        if row.judged and row.operation in ("reduce-scatter", "all-to-all") and row.large
    ]
    assert len(unseen) == 281
    assert _within_target(unseen)


def test_machines_that_were_not_fitted_are_predicted(rows):
    """All operations of each machine, by constants from the other machines."""
    fits = collectives_fit.left_out(rows, generation=False)
    unseen = [
        row.predict_s(fits[row.machine]) / row.seconds - 1
        for row in rows
        if row.judged and row.large
    ]
    assert len(unseen) == 845
    assert _within_target(unseen)


def test_the_data_file_holds_what_the_fit_gives(rows):
    """Compared by what they predict: constants that no row bears on may move."""
    for name, fitted in collectives_fit.fit_all(rows).items():
        shipped = load_calibration(name)
        used = [row for row in rows if row.calibration == name] or rows
        changes = [abs(row.predict_s(fitted) / row.predict_s(shipped) - 1) for row in used]
        assert statistics.median(changes) < 0.01


def test_sizes_count_as_nccl_tests_counts_them(shared, rows):
    """The published algbw and busbw follow from size and time by nccl-tests' formulas."""
    assert rows
    text = (shared / "published" / "nccl_collectives.csv").read_text(encoding="utf-8")
    header, *lines = text.splitlines()
    names = header.split(",")
    checked = 0
    for line in lines:
        row = dict(zip(names, line.split(","), strict=False))
        if not row["source"].startswith("ai-dynamo") or float(row["latency_us"]) < 100:
            continue
        operation = row["collective"].replace("_", "-")
        algbw = int(row["bytes"]) / float(row["latency_us"]) / 1e3
        assert float(row["algbw_gb_s"]) == pytest.approx(algbw, rel=2e-3)
        busbw = algbw * collectives_fit.bus_factor(operation, int(row["gpus"]))
        assert float(row["busbw_gb_s"]) == pytest.approx(busbw, rel=2e-3)
        checked += 1
    assert checked > 300
