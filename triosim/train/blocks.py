"""The parts of the model on one rank: what each pass takes, what it keeps, what it owns.

Equal layers are one block: passes are simulated once for each part, recompute mode and kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from triosim.hardware import Work
from triosim.train.breaks import GraphBreak, break_paths, breaks_in
from triosim.train.context import buffer_bytes, exchanged_bytes, keys_bytes
from triosim.train.costs import Costs
from triosim.train.items import collective, items
from triosim.train.network import Wires
from triosim.train.owned import Owned, padded
from triosim.train.pairs import simulate_pair
from triosim.train.passes import Pass, Step, simulate_pass
from triosim.train.plan import Plan, Unit
from triosim.train.ran import run_of
from triosim.train.recompute import Kept, mode_of
from triosim.train.steps import Copy, LayerCalls, Plain
from triosim.workload import Block, Op, block_of, model_flops_per_token

FORWARD, BACKWARD, INPUT, WEIGHT = "forward", "backward", "input", "weight"
_WEIGHT_PARTS = ("wgrad", "bias")


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes of one micro-batch in one unit.

    `kept` lives from forward to backward, `forward` and `backward` only within the pass.
    """

    kept: int
    forward: int
    backward: int


class Blocks:
    """All passes of a plan, each simulated when it is first asked for."""

    def __init__(self, plan: Plan, wires: Wires) -> None:
        self.plan = plan
        self.wires = wires
        self.costs = Costs.of(plan)
        self._passes: dict[tuple[object, ...], Pass] = {}
        self._kept: dict[tuple[str, str], Kept] = {}
        self._blocks: dict[str, Block] = {}
        self._memory: dict[tuple[object, ...], Memory] = {}
        self._owned: dict[tuple[str, ...], Owned] = {}
        self._modes_of: dict[Unit, tuple[tuple[str, str], ...]] = {}

    def block(self, part: str) -> Block:
        # NOTE: hashing a model's thirty fields for `block_of` at every look-up was a fifth of a run
        if part not in self._blocks:
            plan = self.plan
            self._blocks[part] = block_of(
                plan.model,
                part,
                batch=plan.scenario.micro_batch_size,
                seq=plan.seq,
                dtype=plan.dtype,
                implementation=plan.implementation,
                layout=plan.layout,
            )
        return self._blocks[part]

    @cached_property
    def _breaks(self) -> tuple[str, ...]:
        """Paths of the modules after which a compiled layer's graph breaks."""
        names = self.plan.scenario.graph_breaks
        if names is None:
            return ()
        parts = {
            unit.parts[0] for units in self.plan.virtual_stages for unit in units if unit.layer >= 0
        }
        return break_paths(names, map(self.block, sorted(parts)))

    def _modes(self, unit: Unit) -> tuple[tuple[str, str], ...]:
        modes = self._modes_of.get(unit)
        if modes is None:
            modes = tuple((part, self.kept(part, unit.layer).mode) for part in unit.parts)
            self._modes_of[unit] = modes
        return modes

    def kept(self, part: str, layer: int) -> Kept:
        """A part under the scenario's recompute mode."""
        key = (part, mode_of(self.plan.scenario.recompute, part, layer))
        if key not in self._kept:
            block = self.block(part)
            run = run_of(
                block,
                breaks=breaks_in(block, self._breaks),
                compiled=self.plan.fused and part != "loss" and self._compiles(part),
                processors=self.plan.gpu.processors,
            )
            self._kept[key] = Kept(run, key[1])
        return self._kept[key]

    def _compiles(self, part: str) -> bool:
        """Whether the stack's compile takes a part of the model."""
        stack = self.plan.stack
        ends = stack.compiled_loss if part == "loss" else stack.compiled_ends
        return self.plan.scenario.compiled and (part in ("dense", "moe") or ends)

    def simulate(
        self, unit: Unit, kind: str, *, gathered: bool = False, reduced: bool = False
    ) -> Pass:
        """One pass of a unit; `gathered`: its parameters arrive in a buffer, `reduced`: its
        gradients leave in one, which FSDP2 copies out of and into."""
        copies = self.plan.zero == 3 and self.plan.scenario.fsdp == 2
        key = (self._modes(unit), kind, gathered and copies, reduced and copies)
        if key not in self._passes:
            steps = list(self._steps(unit, kind))
            if gathered and copies:
                phase = FORWARD if kind == FORWARD else BACKWARD
                steps.insert(0, Copy(name="copy out", phase=phase, size_bytes=self.gathered(unit)))
            if reduced and copies:
                size = sum(padded(self.plan, self.owned(unit))) * self.plan.element_bytes
                steps.append(Copy(name="copy in", phase=BACKWARD, size_bytes=size))
            if kind in (BACKWARD, WEIGHT):
                steps += self._accumulation(unit)
            self._passes[key] = simulate_pass(steps, self.costs, self.wires)
        return self._passes[key]

    def simulate_pair(self, ahead: Unit, behind: Unit, kind: str) -> Pass:
        """A unit's forward pass beside another unit's pass of that kind."""
        key = (self._modes(ahead), FORWARD, self._modes(behind), kind)
        if key not in self._passes:
            steps = list(self._steps(ahead, FORWARD)), list(self._steps(behind, kind))
            self._passes[key] = simulate_pair(*steps, self.costs, self.wires)
        return self._passes[key]

    def _steps(self, unit: Unit, kind: str) -> Iterator[Step]:
        parts = unit.parts if kind == FORWARD else tuple(reversed(unit.parts))
        for part in parts:
            if part == "loss" and self._compiles(part):
                yield from self._fused_loss(kind)
                continue
            kept = self.kept(part, unit.layer)
            if kind == FORWARD:
                yield from self._graphs(kept, kept.forward, kept.forward, FORWARD)
                continue
            if kind in (BACKWARD, INPUT):
                yield from self._graphs(kept, kept.again, kept.forward, "recompute")
            chosen = [
                op
                for op in kept.backward
                if kind == BACKWARD or (op.part in _WEIGHT_PARTS) == (kind == WEIGHT)
            ]
            yield from self._graphs(kept, chosen, kept.backward, BACKWARD)

    def _graphs(
        self, kept: Kept, ops: Sequence[Op], whole: Sequence[Op], phase: str
    ) -> Iterator[Step]:
        """Operators in order, some of a `whole` pass, with the breaks between the graphs that
        torch.compile made."""
        if ops and kept.run.block.part in ("dense", "moe"):
            yield LayerCalls(share=len(ops) / len(whole))
        edges = [i for i, op in enumerate(ops) if i and id(op) in kept.run.resumed]
        for start, end in pairwise((0, *edges, len(ops))):
            if start:
                yield GraphBreak()
            yield from items(self.plan, ops[start:end], phase)

    def _accumulation(self, unit: Unit) -> list[Step]:
        """A micro-batch's gradients are added to those of the ones before it."""
        owned, each = self.owned(unit), self.plan.stack.accumulate_bytes
        count = owned.dense_count + owned.expert_count
        if not each or not count:
            return []
        work = Work(kind="elementwise", flops=count, bytes=each * count, dtype=self.plan.dtype)
        return [Plain(name="add gradients", phase=BACKWARD, work=work)]

    def _fused_loss(self, kind: str) -> Iterator[Step]:
        """A compiled loss reads the logits twice forward; backward reads them and writes theirs."""
        if kind == WEIGHT:
            return
        block = self.block("loss")
        entry = block.entry
        assert entry is not None
        work = Work(kind="reduction", flops=4 * entry.numel, bytes=2 * entry.bytes, dtype="fp32")
        yield Plain(name="fused loss", phase=FORWARD if kind == FORWARD else BACKWARD, work=work)
        for op in block.forward if kind == FORWARD else block.backward:
            if op.collective:
                yield collective(self.plan, op)

    def memory(self, unit: Unit) -> Memory:
        """What a unit holds for one micro-batch."""
        key = self._modes(unit)
        if key not in self._memory:
            self._memory[key] = self._measure(unit)
        return self._memory[key]

    def _measure(self, unit: Unit) -> Memory:
        kept = forward = backward = 0
        for part in unit.parts:
            own = self.kept(part, unit.layer)
            if part == "loss" and self._compiles(part):
                entry = own.run.block.entry
                assert entry is not None
                kept += entry.bytes
                backward += entry.bytes  # their gradients
                continue
            kept += own.bytes
            visiting = [
                round(buffer_bytes(self.plan, back=back)) if unit.layer >= 0 else 0
                for back in (False, True)
            ]
            forward = max(forward, own.forward_bytes + visiting[0])
            backward = max(backward, own.work_bytes + visiting[1])
        return Memory(kept=kept, forward=forward, backward=backward)

    def cached_keys(self, unit: Unit) -> float:
        """Bytes of keys and values that a layer keeps for the tokens to come.

        With Ulysses a rank keeps its heads' for the whole sequence, at least one head.
        """
        plan, model = self.plan, self.plan.model
        if unit.layer < 0:
            return 0.0
        if model.kv_lora is not None:
            tokens = plan.scenario.micro_batch_size * plan.seq / plan.sizes["cp"]
            return tokens * (model.kv_lora + model.rope_dim) * plan.element_bytes
        if plan.ulysses > 1:
            return sum(exchanged_bytes(plan)[0][1:])
        return keys_bytes(plan) / plan.sizes["cp"]

    def owned(self, unit: Unit) -> Owned:
        """The parameters of a unit; experts are those whose path says so."""
        if unit.parts not in self._owned:
            values = [v for part in unit.parts for v in self.block(part).parameters]
            if self.plan.scenario.prefill and unit.parts == ("norm",):
                values += self.block("head").parameters  # held, though hardly used
            if "head" in unit.parts and self.plan.model.tied and self.plan.stages > 1:
                # The last stage has a copy of the embedding's table.
                values += self.block("embedding").parameters[:1]
            self._owned[unit.parts] = Owned(
                dense=tuple(v.shape for v in values if ".experts." not in v.path),
                experts=tuple(v.shape for v in values if ".experts." in v.path),
            )
        return self._owned[unit.parts]

    def gathered(self, unit: Unit) -> float:
        """Bytes of a unit's parameters as they are gathered, padding included."""
        element = self.plan.element_bytes
        if self.plan.scenario.precision == "fp8-tensorwise" and self.plan.stack.fp8_gather:
            element = 1 if unit.layer >= 0 else element
        return float(element * sum(padded(self.plan, self.owned(unit))))

    @property
    def handed_bytes(self) -> float:
        """One micro-batch's activations on a boundary between stages (ORACLES P5).

        Where tensor-parallel ranks hold parts of the tokens, or scatter them, each sends its own.
        """
        plan = self.plan
        tokens = plan.scenario.micro_batch_size * plan.seq / plan.sizes["cp"]
        split = plan.layout.sequence_parallel or plan.stack.split_sends
        return tokens * plan.model.hidden * plan.element_bytes / (plan.sizes["tp"] if split else 1)

    @property
    def flops_per_sample(self) -> float:
        """Model FLOPs: forward and backward once, attention counted whole."""
        model = self.plan.model
        each = model_flops_per_token(model, self.plan.seq)
        if self.plan.scenario.prefill:  # a third of it, and of the head one token of each sequence
            each = each / 3 - 2.0 * model.vocab * model.hidden
        return each * self.plan.seq

    def flops_again(self, unit: Unit) -> float:
        """What is computed twice, in one micro-batch; causal attention counted whole."""
        return sum(
            op.flops * (2.0 if op.kind == "attention" else 1.0)
            for part in unit.parts
            for op in self.kept(part, unit.layer).again
        )
