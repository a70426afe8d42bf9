"""The few rules of style that Streamlit's theme has no option for."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from dashboard import chart_file, complaints

CSS = """
<style>
/* The result belongs above the fold: 720 px high on a projector. */
[data-testid="stMainBlockContainer"] { padding: 4.25rem 2.5rem 3rem; }
[data-testid="stSidebarUserContent"] [data-testid="stVerticalBlock"] { gap: 0.7rem; }
[data-testid="stSidebarHeader"] { height: 2.5rem; margin-bottom: 0; }
/* A slider and its exact number share a line; the label may run over both. */
[class*="st-key-pair_"] [data-testid="stColumn"] { min-width: 0; }
[class*="st-key-pair_"] [data-testid="stWidgetLabel"] { overflow: visible; }
[class*="st-key-pair_"] [data-testid="stWidgetLabel"] * { overflow: visible; white-space: nowrap; }
/* Two numbers share a line: the buttons for one more and one less have no room. */
[class*="st-key-pair_bare_"] [data-testid^="stNumberInputStep"] { display: none; }
/* One line of meaning under each headline number. */
[class*="st-key-card_"] [data-testid="stCaptionContainer"] p { line-height: 1.3; }
[class*="st-key-card_"] [data-testid="stMetricLabel"] * { white-space: normal; }
/* What a card of a comparison says: smaller, as four of them share the width. */
[class*="st-key-said_"] p { font-size: 0.875rem; line-height: 1.4; }
/* A link to the next page that looks like the buttons beside it. */
[class*="st-key-button_link"] a {
  min-height: 2.5rem; padding: 0 1rem;
  border: 1px solid rgba(128, 132, 149, 0.5); border-radius: 0.5rem;
}
/* Streamlit writes text that a spreadsheet would run; the pages' own tables do not. */
[data-testid="stElementToolbarButton"]:has([aria-label^="Download as CSV"]) { display: none; }
/* It draws nothing and must not take a gap. */
.st-key-watch { position: absolute; }
/* What a figure's own legend says, where that has no room. */
[data-testid="stElementContainer"]:has(> .stHtml .narrow-legend) { display: none; }
.legend-below { display: flex; flex-wrap: wrap; gap: 0.1rem 0.9rem; font-size: 0.8rem; }
.legend-below i {
  display: inline-block; width: 0.75rem; height: 0.75rem; margin-right: 0.3rem;
}
@media (max-width: 640px) {
  [data-testid="stElementContainer"]:has(> .stHtml .narrow-legend) { display: block; }
  [data-testid="stMainBlockContainer"] { padding: 4.25rem 1rem 3rem; }
  /* A figure has room for a line or two of legend; here it would lie over the bars. */
  [data-testid="stPlotlyChart"] .legend { display: none; }
  .st-key-crowded_network .annotation { display: none; }
  [class*="st-key-cards"] [data-testid="stColumn"] { min-width: 0; flex: 1 1 calc(50% - 1rem); }
}
</style>
"""


# Figures are drawn for one brightness, and Streamlit does not rerun when a person changes it.
# Streamlit replaces the address where a widget is moved, and adds an entry to the browser's history
# where the server has set a widget: here both replace it, so that Back leaves the page.
# Streamlit forgets a click on a tab where its answer to the click before arrives in between that
# and the message to the server: at rest the tab is clicked again.
# It forgets what the server has set a widget to where the next run comes before the widget's code,
# and the widget then says so to the server: another brightness waits until all are drawn.
# White on the light blue of the dark theme cannot be read.
DARK = '[data-testid^="stBaseButton-primary"]:not(:disabled) * { color: #0e1117 !important; }'
WATCH = """
const push = history.pushState.bind(history);
let pressed = null;  // a tab; every run of the page starts the function below again

function replaceOnSamePage(state, unused, url) {
  const same = new URL(url ?? "", location).pathname === location.pathname;
  return same ? history.replaceState(state, unused, url) : push(state, unused, url);
}

export default function ({ data, setTriggerValue }) {
  if (history.pushState.name !== replaceOnSamePage.name) {
    history.pushState = replaceOnSamePage;
  }
  const here = new URL(location);
  if (data.version && !here.searchParams.has("v")) {
    here.searchParams.set("v", data.version);
    history.replaceState(history.state, "", here);
  }
  const app = document.querySelector(".stApp");
  const shade = () => getComputedStyle(app).backgroundColor;
  let last = shade();
  const press = (event) => {
    if (event.isTrusted) {
      const tab = event.target.closest?.('[data-testid="stTab"]');
      pressed = tab && { tab, rests: 0 };
    }
  };
  const events = ["click", "keyup"];
  events.forEach((name) => document.addEventListener(name, press, true));
  const rests = () => app.dataset.testScriptState === "notRunning";
  const skeleton = '[data-testid="stSkeleton"]';
  const timer = setInterval(() => {
    if (shade() !== last && rests() && !document.querySelector(skeleton)) {
      last = shade();
      setTriggerValue("changed", last);
    }
    if (pressed && rests() && ++pressed.rests === 2) {
      if (pressed.tab.getAttribute("aria-selected") === "false") {
        pressed.tab.click();
      }
      pressed = null;
    }
  }, 250);
  return () => {
    clearInterval(timer);
    events.forEach((name) => document.removeEventListener(name, press, true));
  };
}
"""
_watch = st.components.v2.component("triosim_watch", js=WATCH)


def open_page(name: str, version: str = "") -> bool:
    """Every page calls this first; True in the first run after a link or another page.

    `version` goes into an address that has none.
    """
    if PagesManager.uses_pages_directory:
        # The first visit to a server, if it is to a page other than the first, finds the folder
        # pages/ before app.py has said what the pages are: run app.py instead.
        PagesManager.uses_pages_directory = False
        st.rerun()
    # Before the browser has told its theme, its preference says.
    told = st.context.theme.type
    dark = DARK if told == "dark" else "@media (prefers-color-scheme: dark) {" + DARK + "}"
    st.html(CSS.replace("</style>", f"{complaints.CSS}{chart_file.CSS}{dark}</style>"))
    _watch(key="watch", data={"page": name, "version": version}, on_changed_change=lambda: None)
    arrived = st.session_state.get("page") != name
    st.session_state["page"] = name
    return arrived
