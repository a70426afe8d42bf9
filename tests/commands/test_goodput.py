"""`python -m triosim goodput`: the figures of `ts.goodput` as text and as JSON."""

import json
from dataclasses import asdict

import pytest

import triosim as ts

JOB = {"work_s": 1e6, "gpus": 1000, "gpu_mtbf_hours": 24_000.0, "checkpoint_s": 300, "restart_s": 0}
WORDS = ["goodput"]
for name, value in JOB.items():
    WORDS += [f"--{name.replace('_', '-')}", str(value)]


def test_the_text_has_the_published_optima(printed):
    """The whole job fails once a day; Daly 2006 prints 117 minutes, Young's formula gives 120."""
    text = printed(*WORDS)
    assert text.startswith("1,000 GPUs, one of which fails every 1.00 days on average\n")
    assert "best interval: 1.94 hours (Daly), 2.00 hours (Young)" in text


def test_json_has_the_names_of_the_object(printed):
    values = json.loads(printed(*WORDS, "--interval-s", "3600", "--json", "-"))
    want = asdict(ts.goodput(**JOB, interval_s=3600.0))
    assert {name: values[name] for name in want if name != "curve"} == {
        name: value for name, value in want.items() if name != "curve"
    }
    assert values["curve"] == [list(point) for point in want["curve"]]
    assert values["gpus"] == 1000


def test_what_never_fails_is_all_useful(printed):
    words = [*WORDS, "--gpu-mtbf-hours", "inf"]
    assert "goodput           100.00%" in printed(*words)
    values = json.loads(printed(*words, "--json", "-"))
    assert values["mtbf_s"] is None
    assert values["goodput"] == 1


@pytest.mark.parametrize(
    ("flag", "value", "problem"),
    [
        ("--gpus", "2.5", "--gpus 2.5: must be a whole number from 1 to 1,000,000,000."),
        ("--gpus", "many", "--gpus many: must be a number."),
        (
            "--checkpoint-s",
            "-1",
            "--checkpoint-s -1.0: must be a number of seconds from 0 to 1e+12.",
        ),
    ],
)
def test_what_is_refused(refused, flag, value, problem):
    assert refused(*WORDS, f"{flag}={value}") == problem


def test_extremes_read_as_sentences(printed):
    """One GPU that never fails, and checkpoints that cost nothing, need words of their own."""
    text = printed(*WORDS, "--gpus", "1", "--gpu-mtbf-hours", "inf", "--work-s", "1e12")
    assert text.startswith("1 GPU, which never fails\n")
    assert "none is written" in text
    assert "the run takes 31,688 years instead of 31,688 years, with no failure" in text
    assert "best interval: none, as nothing fails" in text
    text = printed(*WORDS, "--checkpoint-s", "0", "--work-s", "1e-3")
    assert "best interval: the shorter the better" in text
    assert "the run takes 1 ms instead of 1 ms, with 1.16e-08 failures" in text


def test_a_job_without_progress(refused):
    assert "makes no progress: it fails every 3.60 s on average" in refused(
        *WORDS, "--gpu-mtbf-hours", "1", status=1
    )
    words = [*WORDS, "--gpu-mtbf-hours", "inf", "--interval-s", "1e-6"]
    assert "do more work between checkpoints" in refused(*words, status=1)


def test_what_is_needed(refused):
    assert "--work-s" in refused("goodput")
