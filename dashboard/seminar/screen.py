"""How an instructor's screen looks: style sheets, keys, and type as large as the screen allows."""

from __future__ import annotations

import streamlit as st

_CSS = """
<style>
html { font-size: 22px; }
[data-testid="stHeader"], [data-testid="stSidebar"], [data-testid="stExpandSidebarButton"] {
  display: none;
}
[data-testid="stMainBlockContainer"] { padding: 1rem 2rem 0.3rem !important; }
/* A projector washes out grey. */
[data-testid="stMain"] :is(p, li, label, h3), [data-testid="stMetricValue"] * { color: {text}; }
[data-testid="stMain"] button p { color: inherit; }
[data-testid="stCaptionContainer"] { opacity: 1; }
[data-testid="stMain"] { background: {page}; }
.st-key-slide_question :is(p, li):not([data-testid="stCaptionContainer"] *) {
  font-size: 1.5rem; line-height: 1.35;
}
[data-testid="stBottom"] { background: {page}; }
[data-testid="stBottomBlockContainer"] {
  padding: 6px 2rem; max-width: none; border-top: 1px solid rgba(128, 132, 149, 0.5);
}
.js-plotly-plot { overflow: visible !important; }
.js-plotly-plot .svg-container {
  transform: scale(calc(1 / var(--fit, 1))); transform-origin: 0 0;
}
[data-testid="stMain"] [data-testid="stVerticalBlock"] { gap: 0.5rem; }
[data-testid="stMain"] h3 { padding-top: 0.3rem; }
[data-testid="stMain"] .st-key-slide_question { gap: 1rem; }
[data-testid="stTabPanel"] { padding-top: 0; }
[class*="st-key-card_"] { padding: 0.3rem 0.8rem; }
[class*="st-key-card_"] [data-testid="stMetricValue"] { font-size: 1.4rem; }
.st-key-presenter * { font-size: 15px; }
.st-key-presenter [data-testid="stIconMaterial"] { font-size: 18px; }
.st-key-presenter button { min-height: 36px; }
.st-key-presenter p { white-space: nowrap; }
.st-key-presenter > [data-testid="stElementContainer"] p { font-size: 18px; white-space: normal; }
.st-key-present_keys, .st-key-watch {
  position: absolute; left: 0; top: 0; width: 0 !important; height: 0; overflow: hidden;
}
</style>
"""
_CONTROLS = (
    "stSlider", "stSelectbox", "stMultiSelect", "stNumberInput", "stTextInput", "stTextArea",
    "stCheckbox", "stButtonGroup", "stRadio", "stForm", "stFileUploader", "stDownloadButton",
    "stPopover", "stButton", "stPageLink",
)  # fmt: skip
_HIDDEN = ", ".join(
    f'[data-testid="stMain"] [data-testid="stElementContainer"]:has([data-testid="{name}"])'
    ':not([data-testid="stBottom"] *)'
    for name in _CONTROLS
)
_SHOWN = ", ".join(
    f'[data-testid="{name}"]'
    for name in (
        "stMetric", "stPlotlyChart", "stMarkdown", "stCaptionContainer", "stHeading",
        "stDataFrame", "stTable", "stAlert", "stBidiComponentIsolated", "stBidiComponentRegular",
        "stHtml", "stTabs", "stSkeleton", "stSpinner", "stProgress",
    )
)  # fmt: skip
# Rows of which nothing is left go as well, tables beside a picture, and on pages with tabs what
# follows the first picture.
CONTROLS_CSS = f"""
<style>
[data-testid="stMain"] [data-testid="stLayoutWrapper"]:not(:has({_SHOWN})):not(
  [data-testid="stBottom"] *),
[data-testid="stTabs"] [data-testid="stVerticalBlock"]
  > :has([data-testid="stPlotlyChart"]) ~ *,
[data-testid="stMain"]:has([data-testid="stPlotlyChart"], .st-key-mesh_map) :is(
  [data-testid="stElementContainer"]:has([data-testid="stDataFrame"]), [class*="st-key-table_"]),
{_HIDDEN}, [data-testid="stMain"] [data-testid="stForm"],
[data-testid="stMain"] :is([data-testid="stPopover"], [data-testid="stExpander"]),
[data-testid="stTabs"] [role="tablist"] {{
  display: none;
}}
</style>
"""
# R is a key of Streamlit's own (it runs the page again), which a button cannot have: these keys are
# taken before Streamlit sees them, and press the bar's buttons. Presenters' remotes page up and
# down. What is too high for the screen is drawn smaller until all of it is there.
_KEYS = """
const BUTTONS = {
  ArrowRight: "present_next", PageDown: "present_next", ArrowLeft: "present_back",
  PageUp: "present_back", r: "present_reveal", R: "present_reveal",
};
const OWN = "input:not([type=checkbox]), textarea, select, .player, [contenteditable=true], " +
  "[role=slider], [role=tab], [role=radio], [role=listbox]";
const SMALLEST = 0.5, STEP = 0.02, OFTEN = 30;

export default function ({ data }) {
  const find = (id) => document.querySelector(`[data-testid=${id}]`);
  const state = (window.triosimFit ??= {});
  if (state.shown !== data.shown) {
    Object.assign(state, { shown: data.shown, scale: 1, grown: 0, redrawn: 0 });
  }

  function press(event) {
    const key = BUTTONS[event.key];
    if (!key || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.composedPath().some((node) => node.matches?.(OWN))) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    document.querySelector(`.st-key-${key} button:not(:disabled)`)?.click();
  }

  // Drawn on a larger sheet that is then made smaller. Figures look at the screen for their size,
  // and get theirs back: their type stays as large as it was.
  function draw(block, room) {
    block.style.setProperty("--fit", state.scale);
    Object.assign(block.style, {
      width: `${100 / state.scale}%`, maxWidth: "none", height: `${room}px`, flex: "none",
      alignSelf: "flex-start", transformOrigin: "0 0",
      transform: state.scale < 1 ? `scale(${state.scale})` : "none",
    });
  }

  // Formulas have one line, however long.
  function narrow() {
    for (const math of document.querySelectorAll(".katex-display")) {
      const room = math.closest("[data-testid=stElementContainer]").clientWidth;
      const size = parseFloat(math.style.fontSize || "1");
      const wanted = 0.97 * size * room / math.scrollWidth;
      if (math.scrollWidth > room) math.style.fontSize = `${wanted}em`;
    }
  }

  // A figure that was drawn while the sheet had another size looks again where its box changes.
  function redraw() {
    for (const plot of document.querySelectorAll(".js-plotly-plot .svg-container")) {
      const box = plot.closest("[data-testid=stPlotlyChart]");
      const off = Math.abs(plot.getBoundingClientRect().width - box.getBoundingClientRect().width);
      const again = off > 2 && !box.style.paddingRight && state.redrawn < OFTEN;
      box.style.paddingRight = again ? "1px" : "";
      state.redrawn += again;
    }
  }

  function fit() {
    if (!data.fit) return;
    narrow();
    const main = find("stMain"), block = find("stMainBlockContainer"), bar = find("stBottom");
    const inner = block?.firstElementChild;
    if (!inner || !bar) return;
    const room = main.clientHeight - bar.offsetHeight;
    const style = getComputedStyle(block);
    const around = parseFloat(style.paddingTop) + parseFloat(style.paddingBottom);
    const height = () => state.scale * (inner.scrollHeight + around);
    const changed = inner.scrollHeight !== state.settled;
    if (state.scale < 1 && changed && height() < 0.96 * room && state.grown < OFTEN) {
      state.grown += 1;
      state.scale = 1;
    }
    draw(block, room);
    while (height() > room && state.scale > SMALLEST) {
      state.scale = Math.max(SMALLEST, state.scale - STEP);
      draw(block, room);
    }
    state.settled = inner.scrollHeight;
    // The sheet is larger than the screen, what is on it is not: nothing is left to scroll to.
    main.style.overflow = height() > room + 1 ? "auto" : "hidden";
    redraw();
  }

  window.addEventListener("keydown", press, true);
  const timer = setInterval(fit, 150);
  fit();
  return () => {
    window.removeEventListener("keydown", press, true);
    clearInterval(timer);
    for (const id of ["stMain", "stMainBlockContainer"]) find(id)?.removeAttribute("style");
  };
}
"""
_component = st.components.v2.component("triosim_present", js=_KEYS)


def style_sheet(*, dark: bool) -> str:
    """Large type, nothing beside the page, and black on white or white on black."""
    text, page = ("#fff", "#000") if dark else ("#000", "#fff")
    return _CSS.replace("{text}", text).replace("{page}", page)


def keys(shown: str, *, fit: bool) -> None:
    """Listen to the keys; `shown` says what is on the screen, so that the type starts large.

    `fit`: all of it has to be on the screen at once; else it scrolls, as on any page.
    """
    _component(key="present_keys", data={"shown": shown, "fit": fit})
