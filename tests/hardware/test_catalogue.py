"""The catalogue of GPUs: every number with a source, names, and damaged data files."""

from __future__ import annotations

import csv
import math
import re

import pytest

from triosim import ConfigError
from triosim.hardware import KINDS, gpu_names, load_gpu
from triosim.hardware.catalogue import read_catalogue

NAMES = (
    "a40", "a100-40gb", "a100-80gb", "h100-sxm", "h100-pcie", "h100-nvl", "h100-96gb", "h200",
    "b200", "gb200", "mi250x", "mi300x", "v100", "t4", "l4", "l40s", "rtx-4090", "cpu",
)  # fmt: skip
NUMBERS = (
    "peak_flops", "memory_bytes", "memory_bytes_per_s", "link_bytes_per_s", "power_w", "processors",
    "host_speed", "launch_s", "efficiency", "matmul",
)  # fmt: skip
# Our name, then the columns gpu and form of the published collection.
PUBLISHED = {
    "a40": ("A40", "PCIe 48GB GDDR6"),
    "a100-40gb": ("A100", "SXM4 40GB"),
    "a100-80gb": ("A100", "SXM4 80GB"),
    "h100-sxm": ("H100", "SXM5 80GB"),
    "h100-pcie": ("H100", "PCIe 80GB"),
    "h100-96gb": ("H100", "SXM 96GB HBM2e 500W (Meta Grand Teton)"),
    "h200": ("H200", "SXM"),
    "b200": ("B200", "SXM"),
    "gb200": ("GB200", "NVL72 per GPU"),
    "mi250x": ("MI250X", "OAM"),
    "mi300x": ("MI300X", "OAM"),
    "v100": ("V100", "SXM2 16/32GB"),
    "l40s": ("L40S", "PCIe 48GB GDDR6"),
}


def test_the_catalogue_holds_the_gpus_of_the_issue():
    assert gpu_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_number_is_positive_and_has_a_source(name):
    gpu = load_gpu(name)
    for field in NUMBERS:
        value = getattr(gpu, field)
        assert gpu.sources[field].strip()
        if isinstance(value, (int, float)):
            assert 0 < value < math.inf
    assert all(0 < peak < 1e17 for peak in gpu.peak_flops.values())
    assert all(0 < share <= 1 for share in gpu.efficiency.values())
    assert all(0 < fit.efficiency <= 1 for fit in gpu.matmul.values())
    assert isinstance(gpu.memory_bytes, int)
    assert set(KINDS) - {"gemm", "conv", "conv_direct", "conv_weight"} < set(gpu.efficiency)


@pytest.mark.parametrize(("name", "row"), PUBLISHED.items())
def test_published_numbers(shared, name, row):
    with (shared / "published" / "gpus.csv").open(newline="", encoding="utf-8") as file:
        (found,) = [r for r in csv.DictReader(file) if (r["gpu"], r["form"]) == row]
    gpu = load_gpu(name)
    for dtype, peak in gpu.peak_flops.items():
        if found[f"{dtype}_tflops"]:
            assert peak == pytest.approx(float(found[f"{dtype}_tflops"]) * 1e12)
    assert gpu.memory_bytes_per_s == pytest.approx(float(found["mem_bw_gb_s"]) * 1e9)
    # The V100 was sold with 16 or 32; "GB" of a memory stack are 2^30 bytes.
    sizes = {int(text) * 2**30 for text in re.findall(r"\d+", found["mem_gb"])}
    assert gpu.memory_bytes in sizes
    link = found["nvlink_uni_gb_s"] or found["pcie_uni_gb_s"]
    assert gpu.link_bytes_per_s == pytest.approx(float(link) * 1e9)


def test_a_peak_that_nobody_published_says_so():
    assert "unpublished" in load_gpu("h100-96gb").sources["peak_flops"]


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("H100", "h100-sxm"),
        ("h100-95gb", "h100-96gb"),
        ("H100-SXM", "h100-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("nvidia a100-sxm4-40gb", "a100-40gb"),
        ("NVIDIA A40", "a40"),
        ("Tesla V100-SXM2-32GB", "v100"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        (" rtx_4090 ", "rtx-4090"),
        ("AMD Instinct MI300X", "mi300x"),
        ("CPU", "cpu"),
    ],
)
def test_aliases_in_any_case(alias, name):
    assert load_gpu(alias) is load_gpu(name)


@pytest.mark.parametrize("name", ["h1000", "", "NVIDIA", None, 100, ["h200"]])
def test_unknown_names(name):
    with pytest.raises(ConfigError, match=r"no such GPU; known are a40, .*, cpu\.$") as caught:
        load_gpu(name)
    assert caught.value.field == "gpu"


@pytest.mark.parametrize(
    ("dtype", "computed_in"),
    [
        ("torch.bfloat16", "bf16"),
        ("float16", "fp16"),
        ("float8_e4m3fn", "fp8"),
        ("float32", "fp32"),
        ("int64", "fp32"),
        ("", "fp32"),
    ],
)
def test_types_by_their_names(dtype, computed_in):
    assert load_gpu("h100-sxm").computes_in(dtype) == computed_in


@pytest.mark.parametrize(
    ("gpu", "dtype", "tflops"),
    [("a100", "fp8", 312), ("v100", "bf16", 15.7), ("t4", "tf32", 8.1), ("cpu", "fp16", 5.3)],
)
def test_a_type_without_units_runs_in_another(gpu, dtype, tflops):
    assert load_gpu(gpu).peak(dtype) == pytest.approx(tflops * 1e12)


def test_hosts_of_a100_are_slower_by_published_single_thread_ratings():
    zen_2, xeon_of_2023 = 1894, 3004  # PassMark: EPYC 7502P, Xeon Gold 5412U
    assert load_gpu("a100").host_speed == pytest.approx(zen_2 / xeon_of_2023, rel=0.01)
    assert load_gpu("h100").host_speed == 1


def test_attention_reaches_what_the_flashattention_papers_print():
    for gpu, tflops in (("h100", 333), ("a100", 190)):  # causal, heads of 128, 8k tokens
        part = load_gpu(gpu)
        reached = part.efficiency["attention"] * part.peak("bf16")
        assert reached == pytest.approx(tflops * 1e12, rel=0.02)


# Damaged data files


def entry(**changes):
    values = {
        "generation": "new",
        "memory_gib": 1,
        "memory_gb_per_s": 1,
        "link_gb_per_s": 1,
        "power_w": 1,
        "processors": 1,
        "peak_tflops": {"fp32": 1},
        "sources": dict.fromkeys(NUMBERS[:6], "here"),
    }
    return {"x": {**values, **changes}}


def fit(**changes):
    matmul = {"efficiency": 1, "ramp_k": 0, "small_tile": 0, "overhead_us": 0}
    efficiency = dict.fromkeys([*KINDS, "memory"], 1.0)
    values = {
        "host_speed": 1,
        "launch_us": 1,
        "efficiency": efficiency,
        "matmul": {"default": matmul},
        "sources": dict.fromkeys(NUMBERS[6:], "here"),
    }
    return {"new": {**values, **changes}}


def test_a_sound_entry():
    gpu = read_catalogue(entry(), fit())["x"]
    assert gpu.memory_bytes == 2**30
    assert gpu.memory_bytes_per_s == 1e9
    assert gpu.peak_flops == {"fp32": 1e12}
    assert gpu.launch_s == pytest.approx(1e-6)


def test_a_generation_takes_what_it_does_not_give_from_another():
    fits = fit() | {"newer": {"like": "new", "launch_us": 2, "efficiency": {"copy": 0.5}}}
    gpu = read_catalogue(entry(generation="newer"), fits)["x"]
    assert gpu.launch_s == pytest.approx(2e-6)
    assert gpu.efficiency["copy"] == 0.5
    assert gpu.efficiency["norm"] == 1.0


@pytest.mark.parametrize(
    ("gpus", "fits", "message"),
    [
        (entry(memory_gib="80"), fit(), r"gpus.toml \[x\] memory_gib = 80: must be a number\."),
        (entry(power_w=0), fit(), r"power_w = 0: must be above 0"),
        (entry(power_w=math.nan), fit(), r"power_w = nan: must be a number from"),
        (entry(peak_tflops={"bf16": 1}), fit(), r"needs fp32"),
        (entry(peak_tflops={"fp32": 1, "fp4": 1}), fit(), r"fp4"),
        (entry(sources={}), fit(), r"sources of peak_flops: must say"),
        (entry(sources=dict.fromkeys(NUMBERS, " ")), fit(), r"must say where the number is from"),
        (entry(generation="old"), fit(), r"generations.toml old: is missing"),
        (entry(), fit(efficiency={}), r"\[new\] memory: is missing"),
        (
            entry(),
            fit(efficiency=dict.fromkeys([*KINDS, "memory"], 1.1)),
            r"1.1: must be .* from 0 to 1",
        ),
        (entry(), fit(host_speed=0), r"host_speed = 0: must be above 0"),
        (entry(), fit(matmul={}), r"needs a fit called default"),
        (entry(), fit(sources={}), r"sources of host_speed: must say"),
    ],
)
def test_damaged_data_files_name_the_place(gpus, fits, message):
    with pytest.raises(ConfigError, match=message):
        read_catalogue(gpus, fits)
