"""The optimizer's traffic."""

from triosim.workload import optimizer_steps

SIZES = (1000, 24)


def moved(**options):
    steps = optimizer_steps(SIZES, options.pop("optimizer", "adamw"), **options)
    return sum(step.work.bytes for step in steps) / sum(SIZES)


def test_a_fused_kernel_moves_everything_once():
    # bf16: read parameter, gradient and two moments, write parameter and moments
    assert moved(fused=True) == 2 * (4 + 3)
    # mixed precision: write parameter (2), read gradient (2), two moments and a master copy both
    # ways in float32 (24)
    assert moved(fused=True, master=True, state_bytes=4) == 2 + 2 + 24
    assert moved(fused=True, optimizer="sgd", element_bytes=4) == 4 * (3 + 2)


def test_foreach_operators_read_their_lists_and_write_the_first():
    # mul 2, lerp 3, mul 2, addcmul 4, sqrt 2, div 2, add 2, addcdiv 4 tensors of two bytes
    assert moved() == 2 * 21
    assert moved(optimizer="adam") == 2 * 19
    assert len(optimizer_steps(SIZES, "adamw", fused=True)) == 1


def test_a_master_copy_is_updated_and_then_copied():
    """Float32 throughout but for the gradient, which two of the operators read; then 4 + 2."""
    assert moved(master=True, state_bytes=4) == 4 * (21 - 3) + 2 * 3 + 4 + 2
    names = [step.name for step in optimizer_steps(SIZES, "adamw", master=True)]
    assert names[-1] == "_foreach_copy_"
