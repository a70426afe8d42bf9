"""Schedules and times for property tests."""

from hypothesis import strategies as st

from triosim.schedules import SCHEDULES

CHUNKED = ("interleaved", "looped-bfs")
TIMES = st.integers(0, 64).map(lambda n: n / 8)  # sums of these are exact


def legal_microbatches(name, stages):
    if name == "interleaved":
        groups = st.integers(1, 4).map(lambda n: n * stages)
        return groups | st.integers(1, stages)
    if name == "zb-h2":
        return st.integers(2 * stages - 1, 2 * stages + 6)
    if name == "dualpipe":
        return st.integers(stages, stages + 4).map(lambda n: 2 * n)
    return st.integers(1, 16)


@st.composite
def settings(draw, names=tuple(SCHEDULES)):
    """Keywords of `pipeline` without times."""
    name = draw(st.sampled_from(names))
    stages = draw(
        st.integers(1, 4).map(lambda n: 2 * n) if name == "dualpipe" else st.integers(1, 7)
    )
    return {
        "schedule": name,
        "stages": stages,
        "microbatches": draw(legal_microbatches(name, stages)),
        "chunks": draw(st.integers(1, 4)) if name in CHUNKED else 1,
    }


@st.composite
def uneven_times(draw, stages):
    """Times of each stage, and a delay of each hop."""
    each = st.lists(TIMES, min_size=stages, max_size=stages)
    inputs, weights = draw(each), draw(each)
    return {
        "forward": [t + 0.125 for t in draw(each)],
        "backward": [a + b for a, b in zip(inputs, weights, strict=True)],
        "weight": weights,
        "transfer": draw(each),
    }


@st.composite
def runs(draw, names=tuple(SCHEDULES)):
    """All keywords of `pipeline`."""
    chosen = draw(settings(names))
    return {**chosen, **draw(uneven_times(chosen["stages"]))}
