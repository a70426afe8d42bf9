"""Whole rows, as the papers draw them."""

from triosim.schedules import make_schedule, write_grid


def rows(*arguments):
    return write_grid(make_schedule(*arguments)).splitlines()


def test_gpipe():
    assert rows("gpipe", 2, 3) == ["F0 F1 F2 B0 B1 B2"] * 2


def test_1f1b():
    assert rows("1f1b", 3, 4) == [
        "F0 F1 F2 B0 F3 B1 B2 B3",
        "F0 F1 B0 F2 B1 F3 B2 B3",
        "F0 B0 F1 B1 F2 B2 F3 B3",
    ]


def test_interleaved():
    """Narayanan et al. 2021, figure 4, on two stages."""
    assert rows("interleaved", 2, 4, 2) == [
        "F0 F1 F0.1 F1.1 F2 B0.1 F3 B1.1 F2.1 B0 F3.1 B1 B2.1 B3.1 B2 B3",
        "F0 F1 F0.1 B0.1 F1.1 B1.1 F2 B0 F3 B1 F2.1 B2.1 F3.1 B3.1 B2 B3",
    ]


def test_looped_breadth_first():
    assert rows("looped-bfs", 2, 2, 2) == ["F0 F1 F0.1 F1.1 B0.1 B1.1 B0 B1"] * 2


def test_zb_h1_postpones_weights_by_the_stage():
    assert rows("zb-h1", 3, 4) == [
        "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3",
        "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3",
        "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3",
    ]


def test_zb_h2_postpones_weights_by_twice_the_stage():
    assert rows("zb-h2", 2, 4) == [
        "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3",
        "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3",
    ]


def test_dualpipe_phases():
    """p = 2: one forward from each end, one pair apart, pairs, two backwards, one weight part."""
    assert rows("dualpipe", 2, 4) == [
        "F0 F2.1 F1 B2.1 F3.1&B0 B3.1 B1 W1",
        "F2.1 F0 F3.1 B0 F1&B2.1 B1 B3.1 W3.1",
    ]
