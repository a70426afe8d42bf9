"""How well the calibrated protocols of triosim.network predict collectives, out of sample.

    python -m benchmarks.collectives           judge the constants in the data file; 20 s
    python -m benchmarks.collectives --rows    the same, and every row
    python -m benchmarks.collectives --fit     fit again and print the constants

The constants in hardware/data/protocols.toml were fitted to all-reduce and all-gather. They are
judged by reduce-scatter and all-to-all, and every machine by constants that have not seen it.
Sizes, algbw (S / t) and busbw are as nccl-tests defines them. Data that is not beside the
repository is passed over.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks.collectives_fit import (
    FITTED,
    MIB,
    Row,
    bus_factor,
    fit_all,
    left_out,
    parts,
    read_rows,
)
from triosim.network.protocol import Calibration, load_calibration

DATA = Path(__file__).resolve().parents[2] / "shared" / "published" / "nccl_collectives.csv"
TARGET_MEDIAN, TARGET_P90 = 0.15, 0.35

Predictor = Callable[[Row], float]


def shipped(row: Row) -> float:
    return row.predict_s(load_calibration(row.calibration))


def main(arguments: Sequence[str]) -> None:
    if not DATA.is_file():
        print(f"no {DATA.name} beside the repository: no collectives to judge")
        return
    rows = read_rows(DATA)
    if "--fit" in arguments:
        print_toml(fit_all(rows))
        return
    judged = [row for row in rows if row.judged]
    print_sizes(judged if "--rows" in arguments else _examples(judged))
    print("\n|predicted / measured - 1| from 1 MiB; bias: the median with its sign")
    print("fitted: all-reduce and all-gather (in sample); unseen: the others (out of sample)")
    _print_heading()
    _print_groups(judged, shipped)
    print("\nconstants that have not seen the machine (all operations)")
    _print_heading()
    machines = left_out(judged, generation=False)
    _print_machines(judged, machines)
    print("\nconstants that have seen no machine of its generation")
    _print_heading()
    generations = left_out(judged, generation=True)
    _print_machines(judged, generations)
    print("\napart: other machines, and over nodes (few rows, networks partly assumed)")
    print("seen: the pair of L40S, all-reduce and all-gather over EFA, B200 over nodes")
    _print_heading()
    apart = [row for row in rows if not row.judged]
    for name, chosen in _grouped(apart, lambda r: f"{r.machine}, {r.ranks} GPUs").items():
        _print_line(name, chosen, shipped)
    _print_worst(judged)
    print(f"\ntarget: median <= {TARGET_MEDIAN:.0%}, 90th percentile <= {TARGET_P90:.0%}")
    _print_heading()
    fitted = [row for row in judged if row.operation in FITTED]
    unseen = [row for row in judged if row.operation not in FITTED]
    _print_line("operations fitted", fitted, shipped)
    _print_line("operations unseen", unseen, shipped)
    _print_line("machine unseen", judged, lambda row: row.predict_s(machines[row.machine]))
    _print_line("machine and op. unseen", unseen, lambda row: row.predict_s(machines[row.machine]))
    _print_line("generation unseen", judged, lambda row: row.predict_s(generations[row.machine]))


def _examples(rows: Sequence[Row]) -> list[Row]:
    """All GPUs of each machine, at a few sizes."""
    most = {row.machine: max(r.ranks for r in rows if r.machine == row.machine) for row in rows}
    sizes = (MIB, 8 * MIB, 64 * MIB, 512 * MIB)
    return [row for row in rows if row.ranks == most[row.machine] and row.size_bytes in sizes]


def print_sizes(rows: Sequence[Row]) -> None:
    print("measured, predicted: time in us, algbw and busbw in GB/s")
    print(f"{'':34} {'GPUs':>4} {'MiB':>9} {'time':>19} {'algbw':>15} {'busbw':>15} {'error':>7}")
    for row in rows:
        predicted_s = shipped(row)
        pairs = []
        for seconds in (row.seconds, predicted_s):
            algbw = row.size_bytes / seconds / 1e9
            pairs.append((seconds * 1e6, algbw, algbw * bus_factor(row.operation, row.ranks)))
        (time, algbw, busbw), (time_p, algbw_p, busbw_p) = pairs
        print(
            f"{row.machine + ' ' + row.operation:34} {row.ranks:>4} {row.size_bytes / MIB:>9.4g} "
            f"{time:>9.1f} {time_p:>9.1f} {algbw:>7.1f} {algbw_p:>7.1f} {busbw:>7.1f} "
            f"{busbw_p:>7.1f} {predicted_s / row.seconds - 1:>+7.0%}"
        )


def _print_heading() -> None:
    print(f"{'':50} {'rows':>5} {'median':>8} {'90th %':>8} {'bias':>8}")


def _print_groups(rows: Sequence[Row], predict: Predictor) -> None:
    for name, chosen in _grouped(rows, lambda r: f"{r.machine:18} {r.operation}").items():
        seen = "fitted" if chosen[0].operation in FITTED else "unseen"
        _print_line(f"{name:35} {seen}", chosen, predict)


def _print_machines(rows: Sequence[Row], calibrations: dict[str, Calibration]) -> None:
    for machine, chosen in _grouped(rows, lambda r: r.machine).items():
        _print_line(machine, chosen, lambda row: row.predict_s(calibrations[row.machine]))


def _grouped(rows: Iterable[Row], key: Callable[[Row], str]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def errors_of(rows: Iterable[Row], predict: Predictor) -> list[float]:
    """predicted / measured - 1 from 1 MiB on."""
    return [predict(row) / row.seconds - 1 for row in rows if row.large]


def percentile(values: Iterable[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def _print_line(name: str, rows: Iterable[Row], predict: Predictor) -> None:
    errors = errors_of(rows, predict)
    if errors:
        absolute = [abs(error) for error in errors]
        print(
            f"{name:50} {len(errors):>5} {statistics.median(absolute):>8.1%} "
            f"{percentile(absolute, 0.9):>8.1%} {statistics.median(errors):>+8.1%}"
        )


def _print_worst(rows: Iterable[Row], count: int = 10) -> None:
    print("\nthe worst rows, measured and predicted")
    large = [row for row in rows if row.large]
    for row in sorted(large, key=lambda r: -abs(shipped(r) / r.seconds - 1))[:count]:
        print(
            f"{row.machine:18} {row.operation:15} {row.ranks} GPUs {row.size_bytes / MIB:>6.4g} MiB"
            f" {row.seconds * 1e6:>8.1f} us {shipped(row) * 1e6:>8.1f} us "
            f"{shipped(row) / row.seconds - 1:>+6.0%}"
        )


def print_toml(fits: dict[str, Calibration]) -> None:
    for name, calibration in fits.items():
        print(f"\n[{name}]\nown_block = {calibration.own_block:.3g}")
        for part in parts(calibration):
            print(
                f"[{name}.{part.name}]\npayload = {part.payload:g}\n"
                f"efficiency = {part.efficiency:.3g}\n"
                f"base_us = {part.base_s * 1e6:.3g}\nstep_us = {part.step_s * 1e6:.3g}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
