import pytest

import triosim as ts
from triosim.sweep import SweepSpec, read_spec


def values(given):
    spec = SweepSpec.made(ts.Scenario(), {"ptp_bandwidth_gb_per_s": given})
    return list(spec.axes[0].values)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1, 4, 2], [1, 4, 2]),
        ([8, 8, 16], [8, 16]),
        ({"from": 1, "to": 4}, [1, 2, 3, 4]),
        ({"from": 0.5, "to": 2, "step": 0.5}, [0.5, 1.0, 1.5, 2.0]),
        ({"from": 1, "to": 4.9, "step": 2}, [1, 3]),
        ({"from": 1, "to": 64, "factor": 4}, [1, 4, 16, 64]),
        ({"from": 3, "to": 20, "factor": 2}, [3, 6, 12]),
        ({"from": 5, "to": 5, "factor": 2}, [5]),
    ],
)
def test_lists_and_ranges(given, expected):
    assert values(given) == expected


@pytest.mark.parametrize(
    "given",
    [
        [],
        "8",
        8,
        None,
        {"from": 1},
        {"from": 1, "to": 8, "factor": 1},
        {"from": 0, "to": 8, "factor": 2},
        {"from": 1, "to": 8, "step": 0},
        {"from": 1, "to": 8, "step": 1, "factor": 2},
        {"from": 1, "to": float("inf")},
        {"from": 8, "to": 1},
        {"from": 1, "to": 1e9},
        {"from": 1, "to": 8, "by": 2},
        {"from": True, "to": 8},
        {"from": 10**400, "to": 10**401, "step": 1},
        {"from": 1e-320, "to": 1e300, "factor": 2},
        {"from": 1, "to": 8, "step": 1e-320},
    ],
)
def test_what_is_no_list_of_values_gets_one_sentence(given):
    with pytest.raises(ts.ConfigError, match=r"^(ptp_bandwidth_gb_per_s|[^\n]+)[^\n]*\.$"):
        values(given)


def test_unknown_fields_and_too_many_points_are_refused():
    with pytest.raises(ts.ConfigError, match="no such field"):
        SweepSpec.made(ts.Scenario(), {"gpu_count": [1]})
    with pytest.raises(ts.ConfigError, match="at most 100,000 points"):
        SweepSpec.made(ts.Scenario(), {n: {"from": 1, "to": 1000} for n in ("gpus", "bucket_mb")})
    with pytest.raises(ts.ConfigError, match="must map fields to values"):
        SweepSpec.made(ts.Scenario(), {})


def test_the_last_axis_varies_fastest():
    spec = SweepSpec.made(ts.Scenario(), {"gpus": [2, 4], "case": [0, 1, 2]})
    assert len(spec) == 6
    assert [tuple(asked.settings.values()) for asked in spec.points()] == [
        (2, 0), (2, 1), (2, 2), (4, 0), (4, 1), (4, 2),
    ]  # fmt: skip


def test_an_illegal_point_says_why_and_the_others_stay():
    spec = SweepSpec.made(ts.Scenario(case=1), {"gpus": [4, 0]})
    legal, wrong = spec.points()
    assert legal.scenario == ts.Scenario(case=1, gpus=4)
    assert wrong.scenario is None
    assert wrong.problem.startswith("gpus 0: must be a whole number")


def test_a_file(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(
        '[scenario]\nmodel = "llama3-8b"\ngpus = 64\n'
        "[sweep]\ntp = [1, 2]\nmicro_batch_size = { from = 1, to = 4, factor = 2 }\n"
    )
    spec = read_spec(path)
    assert spec.base == ts.TrainScenario(model="llama3-8b", gpus=64)
    assert [axis.values for axis in spec.axes] == [(1, 2), (1, 2, 4)]


def test_a_file_may_name_a_saved_scenario(tmp_path):
    (tmp_path / "saved.json").write_text(ts.Scenario(case=1).to_json())
    path = tmp_path / "spec.toml"
    path.write_text('scenario = "saved.json"\n[sweep]\ngpus = [2, 4]\n')
    assert read_spec(path).base == ts.Scenario(case=1)


@pytest.mark.parametrize(
    "text",
    ["[sweep", "[sweep]\nnope = [1]", "[other]\na = 1", "", 'scenario = "absent.json"', "a = 1"],
)
def test_a_wrong_file_gets_one_sentence(tmp_path, text):
    path = tmp_path / "spec.toml"
    path.write_text(text)
    with pytest.raises(ts.ConfigError) as caught:
        read_spec(path)
    assert "\n" not in str(caught.value)
