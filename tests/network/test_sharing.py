"""Max-min fairness: golden rates, and the property that defines it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triosim.network.sharing import fair_rates, share


def test_a_flow_that_is_held_back_elsewhere_leaves_its_share_to_the_others():
    rates = share(links={"L1": 1, "L2": 2}, flows={"A": ["L1"], "B": ["L1", "L2"], "C": ["L2"]})
    assert rates == pytest.approx({"A": 0.5, "B": 0.5, "C": 1.5})


def test_equal_flows_share_equally():
    assert share(links={"L": 3}, flows={"A": ["L"], "B": ["L"], "C": ["L"]}) == pytest.approx(
        {"A": 1, "B": 1, "C": 1}
    )


def test_a_flow_without_links_is_not_held_back():
    assert share(links={"L": 1}, flows={"A": [], "B": ["L"]}) == {"A": float("inf"), "B": 1}


def test_weights_count_what_a_flow_puts_on_each_link():
    # One unit of rate puts 1 on the ring and half a unit on the spine, which is a quarter as wide.
    rates = fair_rates({"ring": 4, "spine": 1}, {"A": {"ring": 1, "spine": 0.5}, "B": {"ring": 1}})
    assert rates == pytest.approx({"A": 2, "B": 2})


links = st.dictionaries(st.sampled_from("abcdef"), st.floats(0.01, 1e12), min_size=1)


@given(links, st.data())
def test_no_link_is_overloaded_and_every_flow_crosses_a_full_link_where_it_has_the_most(
    capacities, data
):
    routes = st.lists(st.sampled_from(sorted(capacities)), min_size=1, max_size=4, unique=True)
    flows = data.draw(st.dictionaries(st.integers(0, 20), routes, min_size=1, max_size=12))
    rates = share(links=capacities, flows=flows)
    load = {k: sum(rates[f] for f, route in flows.items() if k in route) for k in capacities}
    for link, capacity in capacities.items():
        assert load[link] <= capacity * (1 + 1e-9)
    for flow, route in flows.items():
        assert any(
            load[k] >= capacities[k] * (1 - 1e-9)
            and rates[flow] >= max(rates[f] for f, r in flows.items() if k in r) * (1 - 1e-9)
            for k in route
        )
