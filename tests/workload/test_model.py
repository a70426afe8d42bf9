"""What a description of a transformer may say, in one sentence each where it may not."""

import pytest

from triosim.errors import ConfigError
from triosim.workload import Layout, Transformer, block_of, load_model

SMALL = {
    "name": "small", "layers": 2, "hidden": 64, "heads": 4, "ffn": 96, "vocab": 100, "seq_len": 32,
}  # fmt: skip


def test_what_is_left_out_follows_from_the_rest():
    model = Transformer(**SMALL)
    assert (model.groups, model.width, model.v_width, model.moe_layers) == (4, 16, 16, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 0}, "layers 0: must be a whole number from 1"),
        ({"hidden": 2.5}, "hidden 2.5: must be a whole number"),
        ({"heads": 5}, r"heads 5: must divide hidden \(64\)"),
        ({"kv_heads": 3}, r"kv_heads 3: must divide heads \(4\)"),
        ({"head_dim": 0}, "head_dim 0: must be a whole number from 1"),
        ({"norm": "batch"}, "norm batch: must be layer or rms"),
        ({"positions": "alibi"}, "positions alibi: must be learned or rotary"),
        ({"experts": 4, "top_k": 5}, r"top_k 5: must be 1 to experts \(4\)"),
        ({"top_k": 2}, "top_k 2: needs experts"),
        ({"dense_layers": 3}, "layers 2: must be at least 3, for the first 3 layers"),
        ({"kv_lora": 8}, "rope_dim 0: must be at least 1"),
        ({"v_head_dim": 8}, "v_head_dim 8: needs kv_lora"),
    ],
)
def test_bad_descriptions(change, message):
    with pytest.raises(ConfigError, match=message):
        Transformer(**{**SMALL, **change})


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"tp": 0}, "tp 0: must be a whole number from 1"),
        ({"tp": 3}, r"tp 3: must divide the heads \(32\); 2 or 4 would"),
        ({"cp": 3}, r"cp 3: must divide the sequence \(4096\); 2 or 4 would"),
        ({"ep": 2}, "ep 2: must be 1, for the model has no experts"),
    ],
)
def test_bad_layouts(layout, message):
    with pytest.raises(ConfigError, match=message):
        block_of(load_model("llama3-8b"), "dense", batch=1, seq=4096, layout=Layout(**layout))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "batch 0: must be a whole number from 1"),
        ({"seq": 2000}, "seq_len 2000: gpt2 has positions for 1024 tokens"),
        ({"dtype": "int8"}, "dtype int8: must be fp32"),
        ({"implementation": "magic"}, "implementation magic: must be eager"),
    ],
)
def test_bad_blocks(options, message):
    with pytest.raises(ConfigError, match=message):
        block_of(load_model("gpt2"), "dense", **{"batch": 1, "seq": 64, **options})


def test_a_model_without_experts_has_no_such_layer():
    with pytest.raises(ConfigError, match="gpt2 has no experts"):
        block_of(load_model("gpt2"), "moe", batch=1, seq=64)
