"""The dashboard with a health endpoint, for a server: streamlit run serve.py"""

# Worker processes import this file again under another name, and need none of it.
if __name__ != "__mp_main__":
    import streamlit as st
    from starlette.routing import Route

    from dashboard.health import PATH, health

    app = st.App("app.py", routes=[Route(PATH, health)])
