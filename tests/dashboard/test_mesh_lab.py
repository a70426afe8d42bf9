"""The pictures of the lab on device meshes and DTensor."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.lab.mesh import LAB, VIEWS
from dashboard.lab.mesh_placed import FSDP2, placements_of
from dashboard.lab.mesh_views import TITLES, step_ms
from tests.dashboard.labs import charts, open_play
from triosim.mesh import DeviceMesh, Partial, Replicate, Shard, StridedShard, redistribute
from triosim.mesh.presets import PRESETS

M1, M2, M3 = LAB.asked


def opened(asked: Any, **parameters: str) -> AppTest:
    """A question's Play."""
    return open_play(LAB, asked, **parameters)


def tables(at: AppTest) -> list[Any]:
    return [frame.value for frame in at.dataframe]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("asked", LAB.asked, ids=LAB.questions)
def test_every_picture_is_drawn(view: str, asked: Any) -> None:
    at = opened(asked, **{f"{asked.id.lower()}_view": view})
    assert charts(at)
    assert not any("Nothing to draw" in warning.value for warning in at.warning)


def test_the_cards_count_the_empty_ranks() -> None:
    """SEMINAR M1: (2, 0) at (2, 8), 9 of 30 ranks hold nothing."""
    at = opened(M1)
    values = {metric.label: metric.value for metric in at.metric}
    assert values["Ranks"] == "30"
    assert values["Hold nothing"] == "9"
    # chunks of 4 rows and of 1 column
    assert values["Most on a rank"] == "4"
    ranges = next(table for table in tables(at) if "coordinate" in table)
    row = ranges[ranges["coordinate"] == "(2, 8)"].iloc[0]
    assert row["rank"] == 28
    assert row["local shape"] == "(2, 0)"
    assert row["holds"] == "nothing"


def test_a_pending_sum_becomes_shards_by_a_reduce_scatter() -> None:
    """SEMINAR M2, which the picture shows as the question has it: 8.75 and 17.5 ms."""
    at = opened(M2)
    values = {metric.label: metric.value for metric in at.metric}
    assert values["Collectives"] == "reduce-scatter"
    assert values["A rank sends"] == "875 MB"  # 7/8 of 1 GB
    assert values["Time"] == "8.75 ms"
    at = opened(M2, m2_t0="Replicate")
    assert {m.label: m.value for m in at.metric}["Time"] == "17.5 ms"


def test_rank_1_holds_the_strided_rows() -> None:
    """SEMINAR M3: 4:6, and 2:4 with plain shards."""
    at = opened(M3, m3_view=VIEWS[0])
    ranges = next(table for table in tables(at) if "coordinate" in table)
    assert ranges["holds"].tolist() == ["0:2, 0:6", "4:6, 0:6", "2:4, 0:6", "6:8, 0:6"]
    at = opened(M3, m3_view=VIEWS[0], m3_p0="Shard(0)")
    ranges = next(table for table in tables(at) if "coordinate" in table)
    assert ranges["holds"].tolist()[1] == "2:4, 0:6"


def test_fsdp2_cuts_what_tensor_parallelism_has_cut() -> None:
    mesh = DeviceMesh((2, 4), ("a", "b"))
    assert placements_of([FSDP2, "Shard(0)"], mesh) == (StridedShard(0, 4), Shard(0))
    assert placements_of([FSDP2, "Shard(1)"], mesh) == (Shard(0), Shard(1))
    assert placements_of(["Partial", "Replicate"], mesh) == (Partial(), Replicate())


def test_a_product_without_a_rule_says_what_moves() -> None:
    at = opened(M1, m1_view=VIEWS[2], m1_rows="16", m1_columns="16", m1_mesh_columns="1",
                m1_mesh_rows="4", m1_p0="Shard(0)", m1_b0="Shard(0)")  # fmt: skip
    assert any("No rule fits" in warning.value for warning in at.warning)
    at = opened(M1, m1_view=VIEWS[2], m1_rows="16", m1_columns="16", m1_mesh_columns="1",
                m1_mesh_rows="4", m1_p0="Shard(1)", m1_b0="Shard(0)")  # fmt: skip
    assert any(said.value.startswith("Nothing is sent") for said in at.success)
    assert any("\\[P\\]" in text.value for text in at.markdown)


def test_a_placement_that_cannot_be_says_why() -> None:
    at = opened(M1, m1_p0="Shard(2)")
    assert any("dims of this tensor are 0 to 1" in warning.value for warning in at.warning)
    assert not opened(M1, m1_p0="Shard(2)", m1_depth="4").warning


@pytest.mark.parametrize("shown", PRESETS, ids=[one.name for one in PRESETS])
def test_the_five_layouts_are_drawn_with_what_they_send(shown: Any) -> None:
    at = opened(M3, m3_layout=TITLES[shown.name])
    assert len(charts(at)) == len(shown.tensors)
    events = next(table for table in tables(at) if "when" in table)
    sent = [", ".join(s.operation for s in e.steps(shown.mesh) if s.sends) for e in shown.events]
    assert events["collective"].tolist() == [names or "nothing" for names in sent]


def test_a_step_takes_its_bytes_over_its_link() -> None:
    mesh = DeviceMesh((8,), ("x",))
    (gather,) = redistribute((800,), 10**6, mesh, (Shard(0),), (Replicate(),))
    assert step_ms(gather, 100) == pytest.approx(gather.sent_bytes / 100e9 * 1e3)
    (exchange,) = redistribute((80, 80), 10**5, mesh, (Shard(0),), (Shard(1),))
    assert step_ms(exchange, 100) == pytest.approx(exchange.sent_bytes / 100e9 * 1e3)


def test_a_mesh_of_three_dimensions_has_all_its_ranks() -> None:
    at = opened(M3, m3_view=VIEWS[0], m3_mesh_depth="4")
    numbers = json.loads(charts(at)[0])["data"][-1]["text"]
    assert [f"<b>{rank}</b>" for rank in range(16)] == numbers[:16]
