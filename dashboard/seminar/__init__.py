"""The seminar: its outline, presets in `presets/`, and showing them to a class.

`presets.py` reads a preset file, `library.py` keeps them by name, `places.py` knows the page of
each question, `outline.py` the outline's nodes, `presenter.py` the bar and the keys of an
instructor's screen, `slides.py` what a question looks like there.
"""
