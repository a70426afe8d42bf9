"""The labs: predict before you click. One page each, in four parts: Idea, Predict, Play, Explain.

To add a lab:

1. Its questions are in `triosim/lab/<topic>.py`, each with closed form, engine answer and slips.
2. Write `dashboard/lab/<topic>.py` with `LAB = Lab(...)` (see `dashboard.lab.lab.Lab`, and
   `pipeline.py` for an example): code, page, title, idea (at most 60 words), formula, source, the
   ids of its three questions, what the difference between formula and simulation is called, and
   what is not modelled. `more` are parameters that Play has beside those of the question, and
   `draw(desk)` draws the lab's own pictures below the axis; `desk.values` has what is set. Choices
   of the lab's own are `settings`, drawn in `draw` with `desk.choice` and `desk.switch`.
3. Write `pages/lab_<topic>.py`: two lines that call `dashboard.lab.page.open_lab(LAB)`.
4. Add one line to the section "Labs" of `app.py`, and the lab to `LABS` in tests/dashboard/labs.py,
   which checks what all labs have in common.

Everything else comes with the frame: the address (`<code>_q` is the question, `<question>_<name>`
a slider), commit and reveal, grades and hints, the class's counts, the student's file.

Three parameters of the address belong to no lab (`dashboard/frame.py`): `present=1` (an
instructor's screen), `preset=NAME` (whose class a student is in) and `slide` (which step of the
preset is shown). They are kept from page to page. Nothing of an answer is ever in the address.

`dashboard/seminar/` presents: a step of a preset shows one part of a lab at a time (`slides.py`),
and hides controls by their kind. A lab's figures take their type size from `desk.style`. A page
with pictures of its own asks a lab's questions through `strip.py`. A new lab also belongs into
`LABS` of `dashboard/seminar/places.py`.
"""
