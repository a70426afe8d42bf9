from streamlit.testing.v1 import AppTest

from dashboard.examples import EXAMPLES, FIRST
from dashboard.links import parameters_of, values_of
from triosim import simulate
from triosim.figures.text import time_text


def test_an_example_is_already_drawn(start_page: AppTest) -> None:
    assert not start_page.exception
    assert start_page.metric[0].value == time_text(simulate(FIRST).total_ms)
    assert len(start_page.get("plotly_chart")) == 2


def test_doors_lead_to_the_simulation_and_not_to_the_page_itself(start_page: AppTest) -> None:
    links = [link.proto for link in start_page.get("page_link")]
    doors = [link for link in links if link.query_string]
    assert [link.page for link in links if link not in doors] == ["traces"]
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
