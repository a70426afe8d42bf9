"""The seminar: its outline with what has been answered, and presets to present."""

import streamlit as st

from dashboard import look, rejected
from dashboard.address import here, put_right, read_parameters
from dashboard.frame import current, presenting, slide
from dashboard.lab.page import take_along
from dashboard.seminar import presenter, views
from dashboard.settings import VERSION
from triosim.errors import ConfigError


def no_setting(name: str, texts: list[str]) -> None:
    """The address says who shows what, and nothing else."""
    raise ConfigError(name, " and ".join(texts) or "(empty)", "this page has no such setting")


arrived = look.open_page("seminar", VERSION)
put_right("seminar", read_parameters(here(), no_setting), (), arrived=arrived)
rejected.show("seminar", None)
found = current()
if found is not None and presenting() and "slide" in st.query_params:
    presenter.open_step(found, slide())
title, actions = st.columns([0.5, 0.5], vertical_alignment="center")
title.subheader("Seminar: training in practice", anchor=False)
with actions.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
    take_along()
    views.present()
views.progress()
if found is not None:
    views.follow(found)
views.nodes()
