"""What a comparison can be taken along as: tables, scenarios, all of it as JSON."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.compare_run import Compared, Step
from dashboard.compare_table import whole_table
from dashboard.export import as_json, file_button, portable_scenario
from dashboard.train_export import portable_paths
from triosim import Scenario
from triosim.export.table import to_csv
from triosim.resolved import AnyScenario


def export_menu(steps: list[Step], both: Compared | None) -> None:
    """Files of the comparison, and of each scenario."""
    with st.popover("Export", icon=":material/ios_share:"):
        if both is not None:
            file_button("Table (CSV)", "comparison.csv", lambda: to_csv(whole_table(both)).encode())
            file_button(
                "Comparison (JSON)", "comparison.json", lambda: as_json(saved_comparison(both))
            )
        for step in steps:
            file_button(
                f"Scenario {step.letter} (JSON)",
                f"scenario-{step.letter}.json",
                lambda step=step: as_json(saved(step.scenario)),
            )
        st.caption(
            "The address of this page is a link to exactly this comparison. Add a step reads these "
            "JSON files again, as does `python -m triosim compare`."
        )


def saved(scenario: AnyScenario) -> dict[str, Any]:
    """A scenario as it reads in the project's folder of another machine."""
    if isinstance(scenario, Scenario):
        return portable_scenario(scenario).to_dict()
    return {**scenario.to_dict(), **portable_paths(scenario)}


def saved_comparison(both: Compared) -> dict[str, Any]:
    """The whole comparison; what it says of files of this server is left out."""
    plain = both.found.to_dict()
    for entry, step in zip(plain["steps"], both.steps, strict=True):
        entry["scenario"] = saved(step.scenario)
    return plain
