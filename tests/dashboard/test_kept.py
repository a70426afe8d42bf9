from dashboard.kept import BESIDE_BYTES, MOST_BYTES, Kept

LARGE = MOST_BYTES // 4


def test_who_was_not_asked_for_longest_goes_first() -> None:
    kept = Kept()
    for key in ("a", "b", "c"):
        kept.put(key, key.upper(), LARGE)
    assert kept.get("a") == "A"
    kept.put("d", "D", LARGE)  # what stays beside each is too much now
    assert [kept.get(key) for key in ("a", "b", "c", "d")] == ["A", None, "C", "D"]


def test_a_small_answer_counts_too() -> None:
    kept = Kept()
    for key in range(2 * MOST_BYTES // BESIDE_BYTES):
        kept.put(key, key, 0)
    assert len(kept) == MOST_BYTES // BESIDE_BYTES
    assert kept.get(0) is None


def test_one_that_is_put_again_counts_once() -> None:
    kept = Kept()
    kept.put("first", 1, LARGE)
    for answer in range(10):
        kept.put("again", answer, LARGE)
    assert (kept.get("first"), kept.get("again")) == (1, 9)


def test_one_larger_than_all_stays_until_the_next_comes() -> None:
    kept = Kept()
    kept.put("huge", 1, 2 * MOST_BYTES)
    assert kept.get("huge") == 1
    kept.put("small", 2, 0)
    assert (kept.get("huge"), kept.get("small")) == (None, 2)
