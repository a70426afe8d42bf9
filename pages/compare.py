"""Steps side by side: two to four scenarios of either kind, the first of which is the baseline."""

import streamlit as st

from dashboard import look, rejected
from dashboard.address import return_to, set_to
from dashboard.compare_add import add_menu, begin
from dashboard.compare_cards import cards
from dashboard.compare_export import export_menu
from dashboard.compare_files import ask_for
from dashboard.compare_links import (
    PAGE,
    SCENARIOS,
    VIEW,
    address_now,
    packed_here,
    read_address,
    set_scenarios,
    value_of,
)
from dashboard.compare_run import compared, steps_of, why_not
from dashboard.compare_tabs import tabs
from dashboard.packed import Missing, missing, unpack
from dashboard.plain import plain
from dashboard.saved_file import go_on
from dashboard.settings import VERSION
from triosim.errors import TrioSimError
from triosim.resolved import AnyScenario


def comparison(scenarios: list[AnyScenario]) -> None:
    """A card for each step, and what is different where there are two results."""
    title, actions = st.columns([0.5, 0.5], vertical_alignment="center")
    title.subheader("Compare", anchor=False)
    steps = steps_of(scenarios)
    both = compared(steps)
    with actions.container(horizontal=True, horizontal_alignment="right"):
        add_menu(scenarios)
        export_menu(steps, both)
    cards(steps, both)
    if both is None:
        st.info(why_not(steps))
    else:
        tabs(both)


def broken(error: TrioSimError) -> None:
    """What is wrong with the link, and a way on."""
    st.subheader("Compare", anchor=False)
    st.error(f"This link cannot be used: {plain(str(error))}", icon=":material/link_off:")
    st.button("Start anew", icon=":material/restart_alt:", on_click=set_scenarios, args=([],))


def asking(needed: list[Missing]) -> None:
    """Which files the link needs."""
    st.subheader("Compare", anchor=False)
    ask_for(needed)
    st.button("Start anew instead", icon=":material/restart_alt:", on_click=set_scenarios,
              args=([],), type="tertiary")  # fmt: skip


def page(text: str) -> None:
    """What the address asks for."""
    try:
        needed = missing(text) if text else []
        scenarios = unpack(text) if text and not needed else []
    except TrioSimError as error:
        broken(error)
        return
    if needed:
        asking(needed)
    elif scenarios:
        comparison(scenarios)
    else:
        begin()


arrived = look.open_page("compare", VERSION)
go_on()
return_to(PAGE, "compare_address", (SCENARIOS, *VIEW), arrived=arrived)
read_address(arrived)
rejected.show("compare", set_to(value_of))
page(packed_here())
st.session_state["compare_address"] = address_now()
