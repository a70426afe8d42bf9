"""The seminar's question: why does compile gain more on 128 GPUs than on 8?

Published pairs first; then each mechanism as a switch, with its effect on both gains; then what the
numbers do and do not say.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.plain import bullets, plain
from dashboard.timeline import show, style
from dashboard.validation_files import downloads
from dashboard.validation_links import SWITCHES
from dashboard.validation_run import gains_with
from triosim.errors import TrioSimError
from triosim.figures import Style
from triosim.figures.validation_more import gains_figure
from triosim.validation.compile_question import MECHANISMS, Gain, published_gains

Pair = tuple[Gain, Gain]
REPOSITORY, PAPER = "published: repository", "published: paper, as quoted"
NONE, ALL, CHOSEN = "no mechanism", "all four", "your switches"
# Growth of the gain, as a share, below which both gains count as equal: two postings of equal
# settings differ by more.
NOTHING = 0.01


def compile_tab() -> None:
    """Published pairs, switches, their effect, and what follows."""
    published = published_pairs()
    st.markdown(
        "Llama 3 8B with FSDP2, eager and compiled. The paper says +6.6 % on 8 GPUs and +14.8 % on "
        "128. Which mechanism would make the gain grow? Switch them on."
        if _as_quoted(published[PAPER])
        else "Llama 3 8B with FSDP2, eager and compiled. Which mechanism would make the gain grow?"
    )
    compared(published, _switches(), style=style())


def compared(published: dict[str, Pair], on: frozenset[str], *, style: Style) -> None:
    """Gains published and simulated with these mechanisms, and what follows."""
    cases = [frozenset(), *(frozenset((name,)) for name in MECHANISMS), frozenset(MECHANISMS), on]
    try:
        # One by one: a switch that is moved makes one case anew.
        found = [gain for case in cases for gain in gains_with((case,))]
    except TrioSimError as error:
        st.error(f"No result: {plain(str(error))}")
        return
    labels = [NONE, *(f"only {_words(name)}" for name in MECHANISMS), ALL, CHOSEN]
    simulated = dict(zip(labels, found, strict=True))
    rows = pd.DataFrame(
        [
            {"label": label, "published": label in published, "gpus": gain.gpus,
             "gain": gain.gain, "saved_s": gain.saved_s}
            for label, pair in {**published, **simulated}.items()
            for gain in pair
        ]
    )  # fmt: skip
    figure = gains_figure(rows, style=style)
    left, right = st.columns([0.52, 0.48])
    table = _table({**published, **simulated})
    with left:
        show(figure, "Gain from compile on 8 and on 128 GPUs, published and simulated")
    with right:
        st.dataframe(table, hide_index=True, height="content", column_config=_formats())
        with st.container(horizontal=True, horizontal_alignment="right"):
            downloads("compile-8-and-128", table, {"Gains": figure})
    _verdict(published, simulated)


def published_pairs() -> dict[str, Pair]:
    """What was published, on 8 and on 128 GPUs, by who published it."""
    return {REPOSITORY: published_gains(), PAPER: published_gains(second_hand=True)}


def _as_quoted(pair: Pair) -> bool:
    return [f"{gain.gain * 100:.1f}" for gain in pair] == ["6.6", "14.8"]


def _switches() -> frozenset[str]:
    """The mechanisms that are switched on here."""
    on = set()
    columns = st.columns(len(SWITCHES))
    for column, (key, name) in zip(columns, SWITCHES.items(), strict=True):
        with column:
            if st.toggle(_title(name), key=key, bind="query-params"):
                on.add(name)
            st.caption(plain(MECHANISMS[name]))
    return frozenset(on)


def _words(name: str) -> str:
    return name.replace("-", " ").replace("cpu", "CPU").replace("slow down", "slow-down")


def _title(name: str) -> str:
    words = _words(name)
    return words[:1].upper() + words[1:]


def _table(pairs: dict[str, Pair]) -> pd.DataFrame:
    lines = []
    for label, (few, many) in pairs.items():
        lines.append(
            {
                "": label,
                f"{few.gpus}: saved": few.saved_s,
                f"{few.gpus}: gain": few.gain * 100,
                f"{many.gpus}: saved": many.saved_s,
                f"{many.gpus}: gain": many.gain * 100,
                "grows": growth((few, many)) * 100,
            }
        )
    return pd.DataFrame(lines)


def _formats() -> dict[str, object]:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    return {
        "": text(width=186),
        **{f"{gpus}: saved": number(format="%.3f s", width=82) for gpus in (8, 128)},
        **{f"{gpus}: gain": number(format="%.1f %%", width=70) for gpus in (8, 128)},
        "grows": number(format="%+.1f", width=56, help="Percentage points from 8 to 128 GPUs"),
    }


def _verdict(published: dict[str, Pair], simulated: dict[str, Pair]) -> None:
    """What the data say, what each mechanism does to both gains, and that none is the answer."""
    left, right = st.columns(2)
    left.markdown("**What the data say**\n\n" + bullets(data_lines(published)))
    left.markdown("**Which data support which**\n\n" + bullets(support_lines(published, simulated)))
    right.markdown("**What each mechanism does alone**\n\n" + bullets(mechanism_lines(simulated)))
    st.markdown(
        "None of the four is *the* answer. A gain is a ratio, and the growth to be explained rests "
        "on one published number; measuring the eager step on 8 GPUs again would decide more than "
        "a model can."
    )


def growth(pair: Pair) -> float:
    """By how much the gain grows from few to many GPUs."""
    return pair[1].gain - pair[0].gain


def data_lines(published: dict[str, Pair]) -> list[str]:
    """Each published pair, and the one number of four that stands apart."""
    lines = []
    for label, pair in published.items():
        said = [f"{gain.saved_s:.3f} s on {gain.gpus} GPUs (+{gain.gain:.1%})" for gain in pair]
        lines.append(f"{_whose(label)}: compile saves {' and '.join(said)}.".replace("%", " %"))
    gains = [gain for pair in published.values() for gain in pair]
    middle = sorted(gain.saved_s for gain in gains)[len(gains) // 2]
    odd = max(gains, key=lambda gain: abs(gain.saved_s - middle))
    owner = next(label for label, pair in published.items() if odd in pair)
    rest = sorted(gain.saved_s for gain in gains if gain is not odd)
    lines.append(
        f"Three of the four lie between {rest[0]:.3f} and {rest[-1]:.3f} s. The odd one is "
        f"{odd.saved_s:.3f} s on {odd.gpus} GPUs ({_whose(owner).lower()})."
    )
    return lines


def mechanism_lines(simulated: dict[str, Pair]) -> list[str]:
    """What each mechanism adds to both gains, and by how much the gain grows with it."""
    off, lines = simulated[NONE], [f"None of them: the gain grows by {_growth(simulated[NONE])}."]
    for name in MECHANISMS:
        alone = simulated[f"only {_words(name)}"]
        few, many = (_points_text(a.gain - b.gain) for a, b in zip(alone, off, strict=True))
        lines.append(
            f"{_title(name)}: {few} points on {alone[0].gpus} GPUs, {many} on {alone[1].gpus}; "
            f"the gain grows by {_growth(alone)}."
        )
    return lines


def support_lines(published: dict[str, Pair], simulated: dict[str, Pair]) -> list[str]:
    """For each published pair the simulated cases whose gain grows as much."""
    lines = []
    for label, pair in published.items():
        near = [
            case
            for case, found in simulated.items()
            if case != CHOSEN and abs(growth(found) - growth(pair)) <= NOTHING
        ]
        most = max(growth(found) for found in simulated.values())
        lines.append(
            f"{_whose(label)} grows by {_growth(pair)} points. "
            + (
                f"Within {100 * NOTHING:g} of that: {', '.join(near)}."
                if near
                else f"No case grows by as much; the most is {_points_text(most)}."
            )
        )
    return lines


def _growth(pair: Pair) -> str:
    return _points_text(growth(pair))


def _whose(label: str) -> str:
    text = label.partition(": ")[2]
    return f"The {text}"


def _points_text(share: float) -> str:
    return f"{share * 100:+.1f}".replace("-", "\u2212")
