"""Predicted against published, bubble rates and gains, as figures."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from triosim.figures import Style
from triosim.figures.palette import contrast
from triosim.figures.validation import (
    STACK_COLOURS,
    agreement_scatter,
    round_values,
    signed,
    source_errors,
    stack_colour,
)
from triosim.figures.validation_more import bubble_scatter, gains_figure

ROWS = pd.DataFrame(
    {
        "row": [3, 4, 5],
        "run": ["<i>8B</i>, 8 GPUs", "70B, 256 GPUs", "second-hand"],
        "status": ["kept", "marked", "shown"],
        "published_s": [2.0, 20.0, 4.0],
        "calibrated_s": [2.2, 18.0, 4.0],
        "calibrated_time_error": [0.1, -0.1, 0.0],
        "generic_s": [1.5, 20.0, float("nan")],
        "generic_time_error": [-0.25, 0.0, float("nan")],
        "published_gib": [float("nan")] * 3,
        "calibrated_gib": [70.0, 60.0, 50.0],
        "calibrated_memory_error": [float("nan")] * 3,
        "generic_gib": [70.0, 60.0, 50.0],
        "generic_memory_error": [float("nan")] * 3,
    }
)


def of(figure, meta):
    return [trace for trace in figure.data if trace.meta == meta]


def test_a_point_is_published_and_predicted_and_knows_its_row():
    figure = agreement_scatter(ROWS, "time")
    (own,) = of(figure, "calibrated")
    assert list(own.x) == [2.0, 20.0]
    assert list(own.y) == [2.2, 18.0]
    assert [point[0] for point in own.customdata] == [3, 4]
    assert list(own.customdata[0][2:]) == ["2 s", "2.20 s", "+10.0 %"]
    (hollow,) = of(figure, "calibrated not counted")
    assert hollow.marker.symbol == "circle-open"
    assert list(hollow.x) == [4.0]
    (generic,) = of(figure, "generic")
    assert list(generic.y) == [1.5, 20.0]
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


def test_bands_are_shares_of_the_published_value_around_equality():
    figure = agreement_scatter(ROWS, "time")
    wide, narrow = of(figure, "band")
    for band, share in ((wide, 0.25), (narrow, 0.10)):
        ratios = [y / x for x, y in zip(band.x, band.y, strict=True)]
        assert ratios == pytest.approx([1 + share, 1 + share, 1 - share, 1 - share])
    (equal,) = of(figure, "equal")
    assert list(equal.x) == list(equal.y)
    assert equal.x[0] < 1.5
    assert equal.x[1] > 20


def test_one_prediction_needs_no_stack_in_its_name():
    figure = agreement_scatter(ROWS, "time", stacks=("calibrated",))
    assert [trace.name for trace in of(figure, "calibrated")] == ["predicted"]
    assert not of(figure, "generic")


def test_nothing_published_is_a_sentence():
    figure = agreement_scatter(ROWS, "memory")
    assert not figure.data
    assert "No run" in figure.layout.annotations[0].text


def test_names_are_not_read_as_markup():
    text = agreement_scatter(ROWS, "time", style=Style(dark=True)).to_json()
    assert "<i>8B" not in json.dumps(json.loads(text))


@pytest.mark.parametrize(
    ("low", "high", "values"),
    [
        (0.5, 2000, [1, 10, 100, 1000]),
        (0.3, 12, [0.3, 1, 3, 10]),
        (1.8, 12, [2, 5, 10]),
        (40, 95, [40, 50, 60, 80]),
    ],
)
def test_axes_have_round_values(low, high, values):
    found = round_values(low, high)
    assert set(values) <= set(found)
    assert all(low <= value <= high for value in found)
    assert len(found) <= 12


def test_stacks_are_told_apart_from_the_page():
    for stack in STACK_COLOURS:
        for style in (Style(), Style(dark=True)):
            assert contrast(stack_colour(stack, style), style.surface) >= 3


def test_signs_are_written_out():
    assert signed(0.042) == "+4.2 %"
    assert signed(-0.1) == "\u221210.0 %"


def test_a_source_has_both_errors_and_what_was_asked():
    rows = pd.DataFrame(
        {
            "label": ["A", "A", "B"],
            "stack": ["calibrated", "generic", "calibrated"],
            "mean_error": [0.05, 0.12, 0.2],
            "target": [8.0, 18.0, float("nan")],
        }
    )
    figure = source_errors(rows)
    (own,) = of(figure, "calibrated")
    assert list(own.x) == pytest.approx([5, 20])
    assert list(own.y) == ["A", "B"]
    (asked,) = of(figure, "asked of calibrated")
    assert list(asked.x) == [8]
    assert list(asked.y) == ["A"]


def test_bubble_rates_are_percent_by_schedule():
    rates = pd.DataFrame(
        {
            "size": ["1.5B"] * 2, "stages": [8, 8], "microbatches": [24, 24],
            "schedule": ["1f1b", "zb-h1"], "published": [0.2431, 0.1585],
            "predicted": [0.2432, 0.1584],
        }
    )  # fmt: skip
    figure = bubble_scatter(rates)
    (own,) = of(figure, "1f1b")
    assert (own.x[0], own.y[0]) == pytest.approx((24.31, 24.32))
    assert own.marker.symbol != of(figure, "zb-h1")[0].marker.symbol


def test_gains_stand_at_their_ends_with_a_line_between():
    rows = pd.DataFrame(
        {
            "label": ["paper", "paper", "nothing", "nothing"],
            "published": [True, True, False, False],
            "gpus": [8, 128, 8, 128],
            "gain": [0.066, 0.148, 0.169, 0.171],
            "saved_s": [0.163, 0.375, 0.4, 0.41],
        }
    )
    figure = gains_figure(rows)
    assert list(of(figure, "growth")[0].x) == pytest.approx([6.6, 14.8])
    (few,) = of(figure, "8 published")
    assert list(few.y) == ["paper"]
    assert few.customdata[0][0] == "0.163 s"
    assert {trace.name for trace in figure.data if trace.meta != "growth"} == {
        "8 GPUs, published", "128 GPUs, published", "8 GPUs, simulated", "128 GPUs, simulated",
    }  # fmt: skip
