"""One reader under atheris: python -m benchmarks.fuzz_coverage READER INPUTS SEED

`benchmarks.fuzz --coverage` starts this for each reader. libFuzzer keeps the inputs that reach new
lines and changes those; the changes are ours half of the time. It ends the process itself.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path
from random import Random

import atheris

MOST_BYTES = 65_536  # of an input
LONGEST_S = 25
MOST_MEMORY_MB = 2048

logging.disable(logging.WARNING)  # Streamlit warns where no page runs
with atheris.instrument_imports(
    include=["triosim", "tracer", "dashboard"], enable_loader_override=False
):
    from benchmarks.fuzz_inputs import make_input, pack
    from benchmarks.fuzz_readers import READERS
    from triosim.errors import TrioSimError


def main() -> None:
    name, inputs, seed = sys.argv[1:]
    reader = READERS[name]
    seeds = [pack(one) if reader.form == "packed" else one for one in reader.seeds()]

    def one_input(data: bytes) -> None:
        try:
            reader.read(data)
        except TrioSimError:
            return

    def mutate(data: bytes, most: int, number: int) -> bytes:
        if number % 2:
            return atheris.Mutate(data, most)[:most]
        given = reader.seeds() if reader.form == "packed" else [data or seeds[0]]
        return make_input(reader, given, Random(number))[:most]

    print(f"{name}:", flush=True)
    with tempfile.TemporaryDirectory(prefix="triosim-corpus-") as corpus:
        for i, one in enumerate(seeds):
            Path(corpus, f"{i}").write_bytes(one[:MOST_BYTES])
        flags = [f"-runs={inputs}", f"-seed={int(seed) + 1}", f"-max_len={MOST_BYTES}"]
        flags += [f"-timeout={LONGEST_S}", f"-rss_limit_mb={MOST_MEMORY_MB}", "-verbosity=0"]
        flags += ["-print_final_stats=1", f"-artifact_prefix={tempfile.gettempdir()}/"]
        atheris.Setup([sys.argv[0], *flags, corpus], one_input, custom_mutator=mutate)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
