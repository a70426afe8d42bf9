"""The dashboard: streamlit run app.py"""

# Worker processes import this file again under another name, and need none of it.
if __name__ == "__main__":
    from pathlib import Path

    import streamlit as st

    # A local icon: without one the browser would fetch that of the page from the internet.
    icon = Path(__file__).parent / "dashboard" / "icon.svg"
    st.set_page_config(
        page_title="TrioSim", page_icon=icon, layout="wide", initial_sidebar_state=330
    )
    st.navigation(
        {
            "": [st.Page("pages/start.py", title="Start", icon=":material/home:", default=True)],
            "Run": [
                st.Page("pages/simulate.py", title="Simulate", icon=":material/tune:"),
                st.Page("pages/train.py", title="Train", icon=":material/model_training:"),
            ],
            "Inspect": [
                st.Page("pages/traces.py", title="Traces", icon=":material/data_table:"),
                st.Page("pages/network.py", title="Network", icon=":material/hub:"),
            ],
        },
        position="top",
    ).run()
