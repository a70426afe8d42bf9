"""The questions on collectives: the Network page with the first of them open."""

import streamlit as st

from dashboard import look
from dashboard.lab.collectives import SCENES
from dashboard.links import text_of

look.open_page("lab_collectives")
scene = {name: text_of(value) for name, value in SCENES["C1"].items()}
st.switch_page("pages/network.py", query_params={"v": "1", "ask": "C1", **scene})
