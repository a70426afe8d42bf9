"""The dashboard: streamlit run app.py"""

# Worker processes import this file again under another name, and need none of it.
if __name__ == "__main__":
    from pathlib import Path

    import streamlit as st

    from dashboard import access
    from dashboard.seminar import presenter

    # A local icon: without one the browser would fetch that of the page from the internet.
    icon = Path(__file__).parent / "dashboard" / "icon.svg"
    st.set_page_config(
        page_title="TrioSim", page_icon=icon, layout="wide", initial_sidebar_state=330
    )
    admitted = access.admitted()
    # Named also to those who are not admitted, so that the address stays that of the page.
    page = st.navigation(
        {
            "": [
                st.Page("pages/start.py", title="Start", icon=":material/home:", default=True),
                st.Page("pages/seminar.py", title="Seminar", icon=":material/school:"),
            ],
            "Run": [
                st.Page("pages/simulate.py", title="Simulate", icon=":material/tune:"),
                st.Page("pages/train.py", title="Train", icon=":material/model_training:"),
            ],
            "Inspect": [
                st.Page("pages/traces.py", title="Traces", icon=":material/data_table:"),
                st.Page("pages/network.py", title="Network", icon=":material/hub:"),
                st.Page("pages/validation.py", title="Validation", icon=":material/verified:"),
            ],
            "Explore": [
                st.Page("pages/compare.py", title="Compare", icon=":material/compare_arrows:"),
                st.Page("pages/sweep.py", title="Sweep and search", icon=":material/grid_on:"),
            ],
            "Labs": [
                st.Page("pages/lab_data_parallel.py", title="Data parallel", icon=":material/lan:"),
                st.Page("pages/lab_fsdp.py", title="FSDP", icon=":material/data_array:"),
                st.Page("pages/lab_collectives.py", title="Collectives", icon=":material/hub:"),
                st.Page(
                    "pages/lab_mesh.py", title="Device mesh and DTensor", icon=":material/grid_on:"
                ),
                st.Page(
                    "pages/lab_tensor.py", title="Tensor parallel", icon=":material/splitscreen:"
                ),
                st.Page(
                    "pages/lab_pipeline.py",
                    title="Pipeline schedules",
                    icon=":material/view_timeline:",
                ),
                st.Page("pages/lab_context.py", title="Long context", icon=":material/straighten:"),
                st.Page("pages/lab_recompute.py", title="Recomputation", icon=":material/replay:"),
                st.Page("pages/lab_compile.py", title="Compile", icon=":material/bolt:"),
                st.Page("pages/lab_llama.py", title="Training Llama", icon=":material/dns:"),
            ],
        },
        position="top" if admitted else "hidden",
    )
    if admitted:
        presenter.bar()
        page.run()
    else:
        access.door()
