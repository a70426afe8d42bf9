from urllib.parse import parse_qs

from streamlit.testing.v1 import AppTest

from dashboard.examples import EXAMPLES, RUNNING
from dashboard.links import parameters_of, values_of
from dashboard.train_links import read_train
from dashboard.train_published import spelt_out
from dashboard.train_values import scenario_of
from triosim import simulate
from triosim.figures.text import time_text
from triosim.train import make_plan, train
from triosim.validation import load_source, rows_of


def test_the_running_example_is_drawn_and_its_numbers_are_the_engines(start_page: AppTest) -> None:
    assert not start_page.exception
    result = train(RUNNING)
    step, rate, _, memory = (metric.value for metric in start_page.metric)
    assert step == time_text(result.step_ms)
    assert rate == f"{result.tokens_per_s_per_gpu:,.0f}"
    assert memory == f"{result.peak_memory_gib:.1f} GiB"
    assert len(start_page.get("plotly_chart")) == 2


def test_the_running_example_is_the_published_run() -> None:
    row = next(row for row in rows_of(load_source("torchtitan")) if row.number == 1)
    assert spelt_out(make_plan(RUNNING)) == spelt_out(make_plan(row.scenario))


def test_doors_lead_to_train_and_simulate_and_not_to_the_page_itself(start_page: AppTest) -> None:
    links = [link.proto for link in start_page.get("page_link")]
    first, *doors = [link for link in links if link.query_string]
    assert [link.page for link in links if not link.query_string] == ["traces", "validation"]
    assert first.page == "train"
    read = read_train(parse_qs(first.query_string))
    assert read.rejected == []
    assert spelt_out(make_plan(scenario_of(read.values))) == spelt_out(make_plan(RUNNING))
    assert [door.label for door in doors] == [example.title for example in EXAMPLES]
    assert {door.page for door in doors} == {"simulate"}
    for door, example in zip(doors, EXAMPLES, strict=True):
        for name in parameters_of(values_of(example.scenario)):
            assert f"{name}=" in door.query_string


def test_every_example_has_an_answer() -> None:
    for example in EXAMPLES:
        assert all(check.passed for check in simulate(example.scenario).checks)


def test_an_unknown_page_is_harmless(start_page: AppTest) -> None:
    start_page.query_params["nonsense"] = "1"
    assert not start_page.run().exception
