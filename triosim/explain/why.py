"""Waits and tasks in plain sentences, with the figures behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from triosim.amounts import bytes_words, rate_words, share_words, time_words
from triosim.engine.program import Part
from triosim.engine.timeline import Timeline
from triosim.explain.kinds import LAUNCH, part_kind
from triosim.explain.path import critical_path
from triosim.explain.transfers import LinkUse, Move, Transfers
from triosim.explain.waits import Wait
from triosim.explain.words import name_words, place_words, task_words

MOST_SHARERS = 3
MOST_NAMED = 4
WORTH_SAYING = 0.01  # of a task's time
_WAITING: Mapping[str, str] = {
    "imbalance": "waiting for slower GPUs",
    LAUNCH: "waiting for launches",
    "bubble": "waiting for another stage",
}


def short_reason(timeline: Timeline, wait: Wait) -> str:
    """What a wait is, in one line."""
    where = wait.rank_class
    if wait.inside >= 0:
        what = _inside_words(wait)
        return f"{what} inside {name_words(timeline, wait.inside)}"
    if wait.cause < 0:
        return "nothing left to do" if wait.before < 0 else "nothing to wait for"
    cause = task_words(timeline, wait.cause, where)
    if wait.kind == "launch_wait":
        before = "the next task" if wait.before < 0 else name_words(timeline, wait.before)
        return f"the CPU has not launched {before} yet"
    if wait.kind == "bubble":
        return f"waits for another stage: {cause}"
    if wait.kind == "imbalance":
        return f"waits for another GPU: {cause}"
    return f"waits for a transfer: {cause}"


def _inside_words(wait: Wait) -> str:
    if wait.key[0]:
        return f"waits for {wait.key[0]} ({wait.key[1]})"
    kind = LAUNCH if wait.kind == "launch_wait" else wait.kind
    return _WAITING.get(kind, kind).replace("waiting", "waits")


def why(timeline: Timeline, transfers: Transfers, wait: Wait) -> tuple[str, ...]:
    """A wait in a few sentences, the main one first."""
    place = _capital(place_words(timeline, wait.rank_class))
    lines = [f"{place} computes nothing for {time_words(wait.seconds)}: {_main(timeline, wait)}."]
    if wait.before >= 0:
        lines.append(f"Only then can {name_words(timeline, wait.before)} start.")
    if wait.kind == "exposed_communication" and wait.cause >= 0:
        lines += _reasons_of_start(timeline, wait.cause, wait.rank_class)
        lines += move_words(timeline, transfers.move(wait.cause), wait.rank_class)
    elif wait.kind in ("bubble", "imbalance") and wait.cause >= 0:
        lines += _elsewhere(timeline, wait)
    elif wait.kind == "launch_wait" and wait.cause >= 0:
        seconds = float(timeline.end_s[wait.cause] - timeline.start_s[wait.cause])
        lines.append(
            f"Everything else that it needs is there; launching it takes the CPU "
            f"{time_words(seconds)}, after the launches before it."
        )
    elif wait.inside >= 0:
        lines.append("These waits are spread over the pass; open it to see each of them.")
    return tuple(lines)


def _main(timeline: Timeline, wait: Wait) -> str:
    if wait.kind == "idle" and wait.before < 0 and wait.inside < 0:
        return f"nothing is left to do{_last_words(timeline, wait)}"
    return short_reason(timeline, wait)


def _last_words(timeline: Timeline, wait: Wait) -> str:
    """Who makes the step last longer than this rank's own work."""
    if wait.end_s != timeline.total_s or not len(timeline.end_s):
        return "; the next step begins when the slowest stage has done its part"
    last = int(timeline.end_s.argmax())
    return f"; the step ends with {task_words(timeline, last, wait.rank_class)}"


def _reasons_of_start(timeline: Timeline, task: int, seen_from: int) -> Iterator[str]:
    """Which dependency of a task ended last."""
    before = timeline.critical[task]
    if before < 0:
        yield "Nothing held it up: it starts with the step."
        return
    if timeline.program.phase[before] == LAUNCH and timeline.program.phase[task] != LAUNCH:
        yield "It could not start before the CPU had launched it."
        return
    name = task_words(timeline, before, seen_from)
    how = _relation(timeline, task, before)
    yield f"It could not start before {name} had ended{how}."


def _relation(timeline: Timeline, task: int, before: int) -> str:
    """How a task depends on what it waited for last: its result, its stream, another end of it."""
    program = timeline.program
    if before in program.waits[task]:
        return ", whose result it needs"
    if program.stream[before] == program.stream[task]:
        return f", which was before it on the stream {program.streams[program.stream[task]].name}"
    return ": only then were all GPUs that take part ready"


def _elsewhere(timeline: Timeline, wait: Wait) -> Iterator[str]:
    """What filled the time meanwhile: the chain of tasks that the wait's end depends on."""
    program = timeline.program
    chain = critical_path(timeline, wait.cause, wait.start_s)
    spent: dict[str, float] = {}
    for step in chain:
        for kind, seconds in step.kinds_s.items():
            what = f"{_doing(kind)} on {place_words(timeline, step.rank_class)}"
            spent[what] = spent.get(what, 0.0) + seconds
    longest = sorted(spent.items(), key=lambda item: -item[1])
    named = [f"{time_words(seconds)} {what}" for what, seconds in longest]
    rest = f" and {len(named) - MOST_NAMED:,} more" if len(named) > MOST_NAMED else ""
    yield f"Meanwhile, one after the other: {', '.join(named[:MOST_NAMED])}{rest}."
    other = timeline.class_list[wait.cause]
    speed, own = program.classes[other].speed, program.classes[wait.rank_class].speed
    if speed < own:
        place = _capital(place_words(timeline, other))
        yield f"{place} runs at {speed:.3g} of full speed, this one at {own:.3g}."


def _doing(kind: str) -> str:
    """A kind of time as something that goes on."""
    return _WAITING.get(kind, kind)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def move_words(timeline: Timeline, move: Move, seen_from: int) -> Iterator[str]:
    """What made a transfer take its time."""
    how = f" by {move.algorithm}" if move.algorithm else ""
    how += f" with protocol {move.protocol}" if move.protocol else ""
    seconds = move.latency_s + move.bytes_s + move.delay_s
    yield (
        f"It moves {bytes_words(move.size_bytes)}{how} in {time_words(seconds)}: "
        f"{_sum_words(move)}."
    )
    if move.link is not None and move.bytes_s + move.delay_s > WORTH_SAYING * seconds:
        yield from _link_words(timeline, move, move.link, seen_from)


def _sum_words(move: Move) -> str:
    parts = [f"{time_words(move.bytes_s)} for its bytes on links of its own"] * (move.bytes_s > 0)
    if move.latency_s > 0:
        planned = "latency" if move.bytes_s > 0 else "planned on quiet links"
        parts.append(f"{time_words(move.latency_s)} {planned}")
    if move.delay_s > WORTH_SAYING * (move.latency_s + move.bytes_s):
        parts.append(f"{time_words(move.delay_s)} {_delay_words(move)}")
    return " + ".join(parts) or "no time"


def _delay_words(move: Move) -> str:
    link = move.link
    shared = link is not None and link.other_bytes > WORTH_SAYING * link.own_bytes
    if not shared:
        return "for circuits that had to be set up" if move.circuits else "of waiting"
    return "because it shared links" + (" or waited for circuits" if move.circuits else "")


def _link_words(timeline: Timeline, move: Move, link: LinkUse, seen_from: int) -> Iterator[str]:
    full = f", full for {time_words(link.full_s)}" if link.full_s > 0 else ", never full"
    times = link.own_bytes / move.size_bytes if move.size_bytes else 1.0
    share = "" if abs(times - 1) < WORTH_SAYING else f", {times:.3g} times its size"
    yield (
        f"Its fullest link is {link.name} at {rate_words(link.bytes_per_s)}{full}: it put "
        f"{bytes_words(link.own_bytes)} on it{share}."
    )
    total = link.own_bytes + link.other_bytes
    if not link.sharers or link.other_bytes < WORTH_SAYING * total:
        return
    named = [_sharer_words(timeline, s.task, s.overlap_s, seen_from) for s in link.sharers]
    more = len(named) - MOST_SHARERS
    rest = f" and {more:,} more" if more > 0 else ""
    yield (
        f"{share_words(link.other_bytes, total)} of what the link carried meanwhile belonged to "
        f"{', '.join(named[:MOST_SHARERS])}{rest}."
    )


def _sharer_words(timeline: Timeline, task: int, overlap_s: float, seen_from: int) -> str:
    return f"{task_words(timeline, task, seen_from)} (beside it for {time_words(overlap_s)})"


def task_lines(timeline: Timeline, transfers: Transfers, task: int) -> tuple[str, ...]:
    """A task in a few sentences: what it did, what it waited for, what its time is made of."""
    program, own = timeline.program, timeline.class_list[task]
    seconds = float(timeline.end_s[task] - timeline.start_s[task])
    stream = program.streams[program.stream[task]].name
    what = program.phase[task] if program.transfer[task] < 0 else _purpose_words(timeline, task)
    lines = [
        f"{name_words(timeline, task)} ({what}) takes {time_words(seconds)} on "
        f"{place_words(timeline, own)}, stream {stream}."
    ]
    lines += _reasons_of_start(timeline, task, own)
    if program.transfer[task] >= 0:
        lines += move_words(timeline, transfers.move(task), own)
    else:
        lines += _computed(timeline, task, seconds)
    return tuple(lines)


def _purpose_words(timeline: Timeline, task: int) -> str:
    program = timeline.program
    return f"{program.phase[task]}, {program.purpose[program.transfer[task]]}"


def _computed(timeline: Timeline, task: int, seconds: float) -> Iterator[str]:
    """What a computation is made of, and what slowed it down."""
    program = timeline.program
    parts = sorted(program.parts.get(task, ()), key=lambda part: -part.seconds)
    if len(parts) > 1:
        named = (f"{time_words(part.seconds)} {_part_words(part)}" for part in parts)
        yield f"It is made of {', '.join(named)}."
    slowed_s = seconds - program.duration_s[task]
    if program.overlap_slowdown and slowed_s > WORTH_SAYING * seconds:
        yield (
            f"{time_words(slowed_s)} of that is there only because transfers ran beside it: they "
            f"make it {1 + program.overlap_slowdown:.3g} times as slow meanwhile."
        )
    speed = program.classes[timeline.class_list[task]].speed
    if speed != 1.0 and program.phase[task] != LAUNCH:
        yield f"This GPU runs at {speed:.3g} of full speed."


def _part_words(part: Part) -> str:
    if part.kind == "exposed_communication":
        return f"waiting for {part_kind(part)}"
    return _doing(part_kind(part))
