"""FSDP's step for the lab: what is held, sent, gathered and exposed; shards against torch's own."""

from __future__ import annotations

from math import prod

import pytest

from triosim.lab.fsdp_step import (
    GATHER,
    TOY,
    Setup,
    exposed,
    flat_pieces,
    fsdp_step,
    gather_times,
    gathered,
    layer_shapes,
    row_pieces,
    splits,
)
from triosim.mesh import DeviceMesh, Shard, local_shape_and_offset

PSI = 8_030_261_248  # parameters of Llama 3 8B
GIB = 2**30
# Parameters of one layer: four attention matrices with 8 of 32 KV heads, three of the MLP, two
# norms.
LAYER = 4096 * 4096 * 2 + 2 * 1024 * 4096 + 3 * 14336 * 4096 + 2 * 4096


def test_splits_of_sixteen_gpus() -> None:
    """ORACLES Z1 and Z2: 16 Psi/N; all-gather twice and a reduce-scatter of fp32 gradients."""
    found = {split.shard: split for split in splits(Setup(shard=16, seq_len=256), (1, 8, 16))}
    for shard in (8, 16):
        # torchtitan keeps parameters, gradients and both moments in fp32: 16 bytes.
        assert sum(found[shard].state_gib.values()) == pytest.approx(
            16 * PSI / shard / GIB, rel=1e-3
        )
        part = (shard - 1) / shard
        assert found[shard].sent_gb[GATHER] == pytest.approx(2 * 2 * PSI * part / 1e9, rel=1e-3)
        assert found[shard].sent_gb["reduce-scatter"] == pytest.approx(
            4 * PSI * part / 1e9, rel=1e-3
        )
    # HSDP: an all-reduce of 1/8 of the gradients over two copies.
    assert found[8].sent_gb["all-reduce"] == pytest.approx(
        2 * (1 / 2) * 4 * PSI / 8 / 1e9, rel=1e-3
    )
    assert "all-reduce" not in {k for k, v in found[16].sent_gb.items() if v > 1e-3}
    # DDP: one all-reduce of all of them, and nothing is gathered.
    assert found[1].sent_gb == {"all-reduce": pytest.approx(2 * 15 / 16 * 4 * PSI / 1e9, rel=1e-3)}


def test_what_is_gathered_is_the_units_ahead_and_the_one_in_use() -> None:
    """FSDP2 holds one unit ahead, FSDP1 two; without its limiter all of them pile up."""
    fast = {"shard": 8, "gb_per_s": 1e5, "nic_gb_per_s": 1e5}
    two, one, unlimited = gathered(
        [Setup(**fast), Setup(fsdp=1, **fast), Setup(fsdp=1, limiter=False, **fast)]
    )
    whole = 2 * PSI / GIB
    head = 2 * 128_256 * 4096 / GIB
    # All gathers of both passes are there before the first layer has computed; the embedding, as
    # large as the head, has been used and given back.
    assert unlimited.peak_gib == pytest.approx(2 * whole - head, rel=0.01)
    # The largest is the head with layers beside it, one more for FSDP1 where it can.
    layer = 2 * LAYER / GIB
    assert head + layer <= two.peak_gib <= head + 2 * layer + 1e-6 + head
    assert two.peak_gib <= one.peak_gib < unlimited.peak_gib / 3


def test_without_resharding_the_whole_model_is_held() -> None:
    (curve,) = gathered([Setup(shard=8, reshard=False, seq_len=512)])
    assert curve.peak_gib == pytest.approx(2 * PSI / GIB, rel=0.2)
    assert curve.peak_gib >= 2 * PSI / GIB


def test_only_the_first_gather_is_exposed_on_a_fast_network_and_many_tokens() -> None:
    waits = [wait for wait in exposed(fsdp_step(Setup(shard=8))) if wait.kind == GATHER]
    assert len(waits) == 1
    assert waits[0].start_ms == 0


def test_without_prefetch_every_layers_gather_is_exposed_as_long_as_it_takes() -> None:
    setup = Setup(shard=16, prefetch=0)
    result = fsdp_step(setup)
    waits = [wait for wait in exposed(result) if wait.kind == GATHER]
    assert len(waits) >= 2 * 32
    # C11: 16 ranks on two hosts; inside 15/16 of the layer over a link, outside 1/2 over 8 NICs.
    size = 2 * LAYER
    closed_ms = 1e3 * max(size / 2 / (8 * 50e9), 15 / 16 * size / 450e9)
    # Layers in forward; in backward gathers share the links with reductions.
    for wait in waits[1:33]:
        assert wait.end_ms - wait.start_ms == pytest.approx(closed_ms, rel=1e-3)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_rows_are_what_dtensor_gives_each_rank(ranks: int) -> None:
    mesh = DeviceMesh(shape=(ranks,), names=("shard",))
    pieces = row_pieces(TOY, ranks)
    for rank in range(ranks):
        for name, shape in TOY.items():
            local, _ = local_shape_and_offset(shape, mesh, [Shard(0)], (rank,))
            own = sum(p.elements for p in pieces if (p.rank, p.name) == (rank, name))
            assert own == prod(local)
    # Padded, all hold as much.
    held = [sum(p.elements for p in pieces if p.rank == rank) for rank in range(ranks)]
    assert len(set(held)) == 1


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8, 64])
def test_a_flat_parameter_is_padded_by_less_than_one_per_rank(ranks: int) -> None:
    pieces = flat_pieces(TOY, ranks)
    each = -(-43 // ranks)  # 20 + 5 + 15 + 3
    held = [sum(p.elements for p in pieces if p.rank == rank) for rank in range(ranks)]
    assert held == [each] * ranks
    for name, shape in TOY.items():
        assert sum(p.elements for p in pieces if p.name == name) == prod(shape)
    if each * ranks - 43 < ranks:
        assert sum(p.elements for p in pieces if not p.name) == each * ranks - 43


def test_a_layer_has_all_of_its_parameters() -> None:
    assert sum(map(prod, layer_shapes().values())) == LAYER


def test_gathers_over_hosts_are_the_seminars() -> None:
    """SEMINAR F3: 1.02 ms, not 8.66; one NIC for a host of eight takes eight times as long."""
    times = gather_times(block_m=218, hosts_=16, per_host=8, gb_per_s=450, nic_gb_per_s=50)
    each, shared, flat = times.values()
    assert each == pytest.approx(1.02, abs=0.005)
    assert flat == pytest.approx(8.65, abs=0.01)
    assert shared == pytest.approx(8 * each)
