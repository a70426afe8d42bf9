"""`python -m triosim collective`: the calculator's figures as text and as JSON."""

import json

import pytest

import triosim as ts
from triosim.cli import main

WORDS = ["collective", "--op", "all-reduce", "--algorithm", "ring", "--bytes", "1e9"]
WORDS += ["--ranks", "8", "--bandwidth", "100", "--latency-us", "0"]
# The names, which the Python object has as attributes.
NAMES = ("time_ms", "algbw_gb_per_s", "busbw_gb_per_s", "steps", "algorithm", "link_bytes")


def test_the_text(printed):
    text = printed(*WORDS)
    assert text.startswith("all-reduce of 1,000,000,000 bytes over 8 of 8 GPUs, ring\n")
    assert "17.5 ms, of it latency 0 ms in 14 steps" in text
    assert "57.1429 GB/s" in text
    assert "100 GB/s (algbw x 1.75)" in text
    assert "1,750,000,000 bytes" in text


@pytest.mark.parametrize("ranks", ["1", "6", "8"])
def test_json_has_the_names_of_the_object(printed, ranks):
    values = json.loads(printed(*WORDS, "--ranks", ranks, "--json", "-"))
    want = ts.collective(
        "all-reduce", size_bytes=1e9, ranks=int(ranks), algorithm="ring", link_gb_per_s=100
    )
    for name in NAMES:
        assert values[name] == getattr(want, name)
    assert values == want.to_dict()


def test_one_gpu_has_no_bandwidth(printed):
    text = printed("collective", "--ranks", "1")
    assert text.count("n/a") == 2
    assert "latency 0 ms in 0 steps" in text


def test_a_file_gets_the_json_and_the_screen_the_text(printed, tmp_path):
    text = printed(*WORDS, "--json", str(tmp_path / "out.json"))
    assert text == printed(*WORDS)
    assert json.loads((tmp_path / "out.json").read_text())["time_ms"] == pytest.approx(17.5)


def test_topology_group_and_calibration(printed):
    words = ["collective", "--topology", "seminar-h100", "--ranks", "16", "--group", "0,1,2,3"]
    text = printed(*words)
    assert "over 4 of 16 GPUs" in text
    assert "with measured protocol costs" in text
    assert "measured" not in printed("collective", "--topology", "torus", "--ranks", "16")


def test_a_topology_from_a_file(printed, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('kind = "ring"\n[[links]]\ngb_per_s = 50\n')
    text = printed("collective", "--topology", str(file), "--algorithm", "ring")
    assert "35 ms" in text


def test_a_topology_in_words(printed):
    text = printed(
        "collective", "--topology", '{"kind": "ring", "link": {"gb_per_s": 50}}',
        "--algorithm", "ring",
    )  # fmt: skip
    assert "35 ms" in text


@pytest.mark.parametrize("command", [("collective",), ("-case", "1")])
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"kind": "ring",', '{"kind": "ring",: not a description in JSON (Expecting'),
        ('{"kind": "ring"}', "ring: needs links, as in link = { gb_per_s = 50 }."),
        ('{"kind": "ring", "link": {"gb_per_s": 0}}', "link.gb_per_s = 0: must be a number from"),
        ("{" * 100_000, "{{{"),
    ],
)
def test_a_broken_description(refused, command, text, sentence):
    dashes = "--" if command == ("collective",) else "-"
    said = refused(*command, "--topology", text)
    assert said.startswith(f"{dashes}topology {sentence}")


def test_unused_flags_are_warned_of_on_standard_error(capsys):
    words = ["collective", "--topology", "dgx-h100", "--bandwidth", "100", "--json", "-"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    (warning,) = json.loads(out)["warnings"]
    assert err == f"triosim: warning: {warning}\n"
    assert warning == (
        "The bandwidth of 100 GB/s is unused: the topology dgx-h100 has links of its own."
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--ranks 0", "--ranks 0: must be a whole number from 1 to 1,048,576."),
        ("--ranks=", '--ranks "": must be a whole number from 1 to 1,048,576.'),
        ("--topology=", '--topology "": no such topology; known are ring'),
        ("--bytes 1e-300", "--bytes 1e-300: must be 0 or from 1 to 1e+18."),
        ("--ranks 1.5", "--ranks 1.5: must be a whole number from 1 to 1,048,576."),
        ("--ranks x", "--ranks x: must be a whole number from 1 to 1,048,576."),
        ("--bytes -1", "--bytes -1: must be a number from 0 to 1e+18."),
        ("--bytes nan", "--bytes nan: must be a number from 0 to 1e+18."),
        ("--bandwidth 0", "--bandwidth 0: must be a number from 1e-06 to 1e+09."),
        ("--latency-us -1", "--latency-us -1: must be a number from 0 to 1e+09."),
        ("--op sum", "--op sum: must be one of all-reduce, reduce-scatter"),
        ("--op send", "--ranks 8: a send joins two of them."),
        ("--algorithm x", "--algorithm x: all-reduce can use ring"),
        ("--topology tours", "--topology tours: no such topology; known are ring, switch"),
        ("--topology no.json", "--topology no.json: No such file or directory."),
        ("--topology hybrid-cube-mesh --ranks 9", "--topology 9 GPUs: this topology joins at"),
        ("--group 0,x", "--group 0,x: must be ranks with commas, as in 0,1,2."),
        ("--group 0,0", "--group [0, 0]: a rank can take part only once."),
        ("--group 7,8", "--group 8: ranks here are 0 to 7."),
        ("--rank 4", "unrecognized arguments: --rank 4; --help lists the flags."),
        ("more", "unrecognized arguments: more; --help lists the flags."),
        ("--ranks", "argument --ranks: expected one argument; --help lists the flags."),
    ],
)
def test_a_mistake_is_one_sentence(refused, words, sentence):
    assert refused("collective", *words.split(" ")).startswith(sentence)


def test_a_file_that_cannot_be_written(refused, tmp_path):
    path = str(tmp_path / "no" / "file")
    assert refused(*WORDS, "--json", path, status=1) == f"{path}: No such file or directory."


def test_a_network_in_two_parts_has_no_answer(refused, tmp_path):
    file = tmp_path / "cut.json"
    ends = [{"between": pair, "link": {"gb_per_s": 1}} for pair in (["a", "b"], ["c", "d"])]
    table = {"kind": "graph", "gpus": ["a", "b", "c", "d"], "connections": ends}
    file.write_text(json.dumps(table))
    sentence = refused("collective", "--topology", str(file), "--ranks", "4", status=1)
    assert "c" in sentence
