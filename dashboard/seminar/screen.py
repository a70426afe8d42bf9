"""How an instructor's screen looks: style sheets, keys, and type as large as the screen allows."""

from __future__ import annotations

import streamlit as st

BAR_PX = 56
_CSS = f"""
<style>
html {{ font-size: 22px; }}
[data-testid="stHeader"], [data-testid="stSidebar"], [data-testid="stExpandSidebarButton"] {{
  display: none;
}}
[data-testid="stMainBlockContainer"] {{ padding: 1rem 2rem {BAR_PX + 8}px !important; }}
/* A projector washes out grey. */
[data-testid="stMain"] :is(p, li, label, h3), [data-testid="stMetricValue"] * {{ color: {{text}}; }}
[data-testid="stMain"] button p {{ color: inherit; }}
[data-testid="stCaptionContainer"] {{ opacity: 1; }}
.stApp {{ background: {{page}}; }}
.st-key-slide_question :is(p, li):not([data-testid="stCaptionContainer"] *) {{
  font-size: 1.5rem; line-height: 1.35;
}}
.st-key-presenter {{
  position: fixed; left: 0; right: 0; bottom: 0; z-index: 1000; padding: 6px 2rem;
  background: {{page}}; width: auto;
  border-top: 1px solid rgba(128, 132, 149, 0.5);
}}
.st-key-presenter * {{ font-size: 15px; }}
.st-key-presenter [data-testid="stIconMaterial"] {{ font-size: 18px; }}
.st-key-presenter button {{ min-height: 36px; }}
.st-key-presenter p {{ white-space: nowrap; }}
.st-key-presenter > [data-testid="stElementContainer"] p {{ font-size: 18px; white-space: normal; }}
.st-key-present_keys {{ position: absolute; }}
</style>
"""
_CONTROLS = (
    "stSlider", "stSelectbox", "stMultiSelect", "stNumberInput", "stTextInput", "stTextArea",
    "stCheckbox", "stButtonGroup", "stRadio", "stForm", "stFileUploader", "stDownloadButton",
    "stPopover", "stButton", "stPageLink",
)  # fmt: skip
_HIDDEN = ", ".join(
    f'[data-testid="stMain"] [data-testid="stElementContainer"]:has([data-testid="{name}"])'
    ":not(.st-key-presenter *)"
    for name in _CONTROLS
)
_SHOWN = ", ".join(
    f'[data-testid="{name}"]'
    for name in (
        "stMetric", "stPlotlyChart", "stMarkdown", "stCaptionContainer", "stHeading", "stLatex",
        "stDataFrame", "stTable", "stAlert", "stBidiComponentIsolated", "stBidiComponentRegular",
        "stHtml", "stTabs", "stSkeleton", "stSpinner", "stProgress",
    )
)  # fmt: skip
# Rows of which nothing is left go as well, and on pages with tabs what follows the first picture.
CONTROLS_CSS = f"""
<style>
[data-testid="stMain"] [data-testid="stLayoutWrapper"]:not(:has({_SHOWN}, .st-key-presenter)),
[data-testid="stTabs"] [data-testid="stVerticalBlock"]
  > :has([data-testid="stPlotlyChart"]) ~ *,
{_HIDDEN}, [data-testid="stMain"] [data-testid="stForm"],
[data-testid="stMain"] [data-testid="stPopover"], [data-testid="stTabs"] [role="tablist"] {{
  display: none;
}}
</style>
"""
# R is a key of Streamlit's own (it runs the page again), which a button cannot have: these keys are
# taken before Streamlit sees them, and press the bar's buttons. Presenters' remotes page up and
# down. Below the largest type, the page is drawn smaller until all of it is on the screen.
_KEYS = """
const BUTTONS = {
  ArrowRight: "present_next", PageDown: "present_next", ArrowLeft: "present_back",
  PageUp: "present_back", r: "present_reveal", R: "present_reveal",
};
const OWN = "input:not([type=checkbox]), textarea, select, .player, [contenteditable=true], " +
  "[role=slider], [role=tab], [role=radio], [role=listbox]";
const SMALLEST = 0.5, STEP = 0.02, OFTEN = 12;

export default function ({ data }) {
  const find = (id) => document.querySelector(`[data-testid=${id}]`);
  const state = (window.triosimFit ??= { shown: "", zoom: 1, drawn: 1, grown: 0 });
  if (state.shown !== data.shown) Object.assign(state, { shown: data.shown, zoom: 1, grown: 0 });

  function press(event) {
    const key = BUTTONS[event.key];
    if (!key || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.composedPath().some((node) => node.matches?.(OWN))) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    document.querySelector(`.st-key-${key} button:not(:disabled)`)?.click();
  }

  // The bar is inside the block, and keeps its size.
  function zoom(block) {
    block.style.zoom = state.zoom;
    const bar = document.querySelector(".st-key-presenter");
    if (bar) bar.style.zoom = 1 / state.zoom;
    // Figures look at the width that they have when the window's changes.
    if (state.drawn !== state.zoom) window.dispatchEvent(new Event("resize"));
    state.drawn = state.zoom;
  }

  function fit() {
    const main = find("stMain"), block = find("stMainBlockContainer");
    if (!main || !block) return;
    zoom(block);
    const height = () => block.getBoundingClientRect().height;
    if (state.zoom < 1 && height() < 0.88 * main.clientHeight && state.grown < OFTEN) {
      state.grown += 1;
      state.zoom = 1;
      zoom(block);
    }
    while (main.scrollHeight > main.clientHeight + 1 && state.zoom > SMALLEST) {
      state.zoom = Math.max(SMALLEST, state.zoom - STEP);
      zoom(block);
    }
  }

  window.addEventListener("keydown", press, true);
  const timer = setInterval(fit, 150);
  fit();
  return () => {
    window.removeEventListener("keydown", press, true);
    clearInterval(timer);
    const block = find("stMainBlockContainer");
    if (block) block.style.zoom = "";
  };
}
"""
_component = st.components.v2.component("triosim_present", js=_KEYS)


def style_sheet(*, dark: bool) -> str:
    """Large type, nothing beside the page, and black on white or white on black."""
    text, page = ("#fff", "#000") if dark else ("#000", "#fff")
    return _CSS.replace("{text}", text).replace("{page}", page)


def keys(shown: str) -> None:
    """Listen to the keys; `shown` says what is on the screen, so that the type starts large."""
    _component(key="present_keys", data={"shown": shown})
