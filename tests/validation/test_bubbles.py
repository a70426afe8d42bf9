"""Zero Bubble's 48 bubble rates."""

import csv

from triosim.validation import bubble_rates

COLUMNS = {
    "1f1b": "bubble_1f1b", "interleaved": "bubble_1f1b_interleaved", "zb-h1": "bubble_zb_h1",
    "zb-h2": "bubble_zb_h2",
}  # fmt: skip


def test_all_cells_agree():
    rates = bubble_rates()
    assert len(rates) == 48
    assert rates.agrees.all(), rates[~rates.agrees]


def test_the_printed_rates_are_those_of_the_paper(shared):
    with (shared / "published/zero_bubble_stage_times.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    rates = bubble_rates().set_index(["size", "microbatches", "schedule"]).published
    for line in lines:
        for schedule, column in COLUMNS.items():
            key = (line["model"].removeprefix("GPT "), int(line["micro_batches"]), schedule)
            assert rates[key] == float(line[column])
