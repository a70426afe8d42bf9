"""A row in columns says what its tasks say one by one."""

from hypothesis import given

from tests.schedules.strategies import settings
from triosim.schedules import make_schedule


def backward_of(task):
    """Chunk and micro-batch of the backward, or part of one, that a task runs; None for none."""
    if task.kind == "F":
        return None
    if task.kind == "F&B":
        return task.backward_chunk, task.backward_microbatch
    return task.chunk, task.microbatch


@given(settings())
def test_a_row_in_columns(wanted):
    schedule = make_schedule(*(wanted[k] for k in ("schedule", "stages", "microbatches", "chunks")))
    for tasks, split, row in zip(schedule.rows, schedule.split, schedule.columns, strict=True):
        forwards = [(i, t.chunk, t.microbatch) for i, t in enumerate(tasks) if t.kind[0] == "F"]
        assert list(zip(*(column.tolist() for column in row.forwards), strict=True)) == forwards
        whole = [(i, *backward_of(t)) for i, t in enumerate(tasks) if t.kind in ("B", "F&B")]
        assert list(zip(*(column.tolist() for column in row.backwards), strict=True)) == whole
        first, last = {}, {}
        for i, task in enumerate(tasks):
            if task.kind in ("F", "F&B"):
                first.setdefault(task.chunk, i)
            if task.kind != "F":
                last[backward_of(task)[0]] = i
        assert (row.first, row.last) == (first, last)
        sorts = {}
        for task, sort in zip(tasks, row.sort.tolist(), strict=True):
            apart = task.kind in ("B", "F&B") and backward_of(task) in split
            sorts.setdefault(sort, set()).add((task.kind, task.chunk, task.backward_chunk, apart))
        assert all(len(alike) == 1 for alike in sorts.values())
        assert len(set.union(*sorts.values())) == len(sorts)
