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

The frame knows three parameters that belong to no lab: `present=1` (an instructor's screen: large
type, no sidebar, and the button that reveals a class's answers), `preset=NAME` (whose class a
student is in) and `step`. `present.py` remembers the first two from page to page. Nothing of an
answer is ever in the address.

For presets and the presentation mode: the parts are functions (`page.idea`, `predict.predict`,
`classroom.classroom`, `predict.reveal`, `play.play`, `explain.explain`), so that a step can draw
one of them; `predict.show_me` is what a key that reveals has to call, `answers.forget` closes a
question again and `play.reset` takes its sliders back. Figures take their type size from
`present.style`. A page with pictures of its own asks a lab's questions through `strip.py`.
"""
