"""Max-min fairness: golden rates, and the property that defines it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triosim.errors import ConfigError
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


def test_nothing_to_share():
    assert share(links={}, flows={}) == share(links={"L": 1}, flows={}) == {}
    assert share(links={}, flows={"A": []}) == {"A": float("inf")}


@pytest.mark.parametrize(
    ("links", "flows", "sentence"),
    [
        ({"L": 1}, {"A": ["M"]}, "flows A: M: no such link; there are L."),
        ({}, {"A": ["M"]}, "flows A: M: no such link; there are none."),
        (dict.fromkeys(range(9), 1), {"A": [9]},
         "flows A: 9: no such link; there are 0, 1, 2, 3, 4, 5, 6, 7, ..."),
        ({"L": 1}, {"A": [["L"]]}, "flows A: ['L']: no such link; there are L."),
        ({"L": 1}, {"A": "L"}, 'flows A: L: must be a list of links, as in ["L1", "L2"].'),
        ({"L": 1}, {"A": None}, 'flows A: None: must be a list of links, as in ["L1", "L2"].'),
        ({"L": 1}, {"A": {"L": 1}}, "flows A: {'L': 1}: must be a list of links, as in"),
        ({"L": 1}, ["A"], "flows ['A']: must map flows to their links, as in"),
        (["L"], {}, "links ['L']: must map links to capacities, as in"),
        *(
            ({"L": bad}, {"A": ["L"]}, f"links L: {bad}: the capacity must be a number above 0.")
            for bad in (0, -1, -0.5, float("nan"), float("inf"), "1", None, True, 1j)
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_shared(links, flows, sentence):
    with pytest.raises(ConfigError) as caught:
        share(links=links, flows=flows)
    assert str(caught.value).startswith(sentence)


def test_numpy_numbers_are_numbers():
    rates = share(links={"L": np.float64(3), "M": np.int64(2)}, flows={"A": ("L", "M")})
    assert rates == {"A": 2}


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


weighted = st.dictionaries(
    st.integers(0, 5), st.floats(0.05, 1.0), min_size=1, max_size=4
).map(lambda weights: {link: w / max(weights.values()) for link, w in weights.items()})  # fmt: skip


@given(
    st.lists(st.floats(0.1, 10.0), min_size=6, max_size=6),
    st.lists(weighted, min_size=1, max_size=8),
)
def test_rates_are_those_of_linear_programming(capacities, flows):
    rates = fair_rates(dict(enumerate(capacities)), dict(enumerate(flows)))
    assert list(map(rates.get, range(len(flows)))) == pytest.approx(
        by_linear_programs(capacities, flows), rel=1e-6
    )


def by_linear_programs(capacities, flows):
    """Lexicographic max-min: raise the lowest rate as far as it goes, fix who is at it, repeat.

    A flow is fixed where, with no other below the level, it cannot exceed it.
    """
    optimize = pytest.importorskip("scipy.optimize")
    count = len(flows)
    put = np.array([[weights.get(k, 0.0) for weights in flows] for k in range(len(capacities))])
    fixed = {}

    def best(objective, lowest):
        """The objective's maximum over the rates and, as last variable, their lowest."""
        bounds = [(fixed.get(f, lowest), fixed.get(f)) for f in range(count)] + [(0, None)]
        free = [f for f in range(count) if f not in fixed]
        above = np.zeros((len(free), count + 1))
        above[range(len(free)), free] = -1.0
        above[:, count] = 1.0
        answer = optimize.linprog(
            -np.array(objective),
            A_ub=np.vstack([np.hstack([put, np.zeros((len(put), 1))]), above]),
            b_ub=np.concatenate([np.array(capacities) * (1 + 1e-12), np.zeros(len(free))]),
            bounds=bounds,
        )
        assert answer.status == 0, answer.message
        return -answer.fun

    while len(fixed) < count:
        lowest = best([0.0] * count + [1.0], 0.0)
        highest = {
            f: best([float(f == g) for g in range(count)] + [0.0], lowest * (1 - 1e-10))
            for f in range(count)
            if f not in fixed
        }
        stuck = [f for f, rate in highest.items() if rate <= lowest * (1 + 1e-7)]
        assert stuck
        fixed |= dict.fromkeys(stuck, lowest * (1 - 1e-12))
    return [fixed[f] for f in range(count)]
