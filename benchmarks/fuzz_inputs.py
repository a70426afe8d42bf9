"""Broken inputs from valid ones: by the form of the file, by its text and by its bytes.

Everything is drawn from the random generator that is given, so that an input can be made again.
"""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlencode

from benchmarks.fuzz_readers import PART, Reader
from triosim.trace.read import OPERATOR_COLUMNS, TENSOR_COLUMNS

BOMB_BYTES = 2**26  # unpacked: four times what a reader here may unpack
MOST_BYTES = 2**22  # of an input: what is read takes memory and time in proportion to it
WORDS: Sequence[str] = (
    "", " ", "0", "-1", "1e400", "-1e400", "NaN", "Infinity", "-Infinity", "nan", "inf", "1e-320",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 400, "9" * 5000,
    "0x10", "1_000", "\u0663", "1.0", "1e3", "true", "null", "None", "[]", "[;]", "[1; 2", "[1, 2]",
    "{}", "..", "../../etc/passwd", "/etc/passwd", "C:\\Windows\\win.ini", "\\\\host\\share", "~",
    "\0", "\ufeff", "\ud800", "\\ud800", "\udcff", "\u202e", "\U0001f600", "=1+1", "@SUM(A1)",
    "a" * 70_000,
    "<img src=x onerror=alert(1)>", "</script>", "$\\alpha$", "${x}", "%s%n", "{0.__class__}",
    "upload-000000000000", "published:../x", "gpt2", "torus:2x2", "fat-tree", "ring", "\r\n", ",",
    '"',
)  # fmt: skip
VALUES: Sequence[Any] = (
    None, True, False, 0, -1, 1, 2, 3, 7, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1,
    10**30, 10**400, 0.5, -0.0, 1e-320, 1e308, float("nan"), float("inf"), float("-inf"),
    [], {}, [[]], [None], {"": None}, [1, 2], {"kind": "ring"}, {"3": 0.5}, *WORDS,
)  # fmt: skip


def make_input(reader: Reader, seeds: Sequence[bytes], random: Random) -> bytes:
    """One input for a reader: a seed, or what is left of it after one to four changes."""
    data = random.choice(seeds)
    if random.random() < 0.01:
        return random.choice(_FROM_NOTHING)(random)
    parts = data.split(PART)
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        at = random.randrange(len(parts))
        parts[at] = _changed(reader.form, parts[at], random)[:MOST_BYTES]
    if random.random() < 0.03:
        random.shuffle(parts)
    elif random.random() < 0.03:
        parts = parts[:-1] or parts
    if reader.form == "packed":
        text = pack(parts[0])
        return text if random.random() < 0.8 else change_text(text, random)
    return PART.join(parts)


def _changed(form: str, part: bytes, random: Random) -> bytes:
    """Half of the changes keep the form, so that they reach behind the parser."""
    chance = random.random()
    if chance < 0.55:
        return change_form(form, part, random)
    if chance < 0.8:
        return change_text(part, random)
    return change_bytes(part, random)


def change_form(form: str, part: bytes, random: Random) -> bytes:
    """A change that leaves a document of the same form; of another kind where it is none."""
    if part.lstrip()[:1] in (b"{", b"["):
        form = "json"
    elif b"OperatorID" in part[:400] or b"TensorID" in part[:400]:
        form = "csv"
    try:
        return _FORMS["json" if form == "packed" else form](part, random)
    except (ValueError, RecursionError, IndexError):  # broken before
        return change_text(part, random)


def change_json(part: bytes, random: Random) -> bytes:
    root = [json.loads(part)]
    path = _some_place(root, random)
    holder, key = path
    value = holder[key]
    choice = random.randrange(8)
    if choice <= 2:
        holder[key] = random.choice(VALUES)
    elif choice == 3 and isinstance(holder, dict):
        holder[random.choice((*WORDS, *holder))] = holder.pop(key)
    elif choice == 4:
        del holder[key]
    elif choice == 5:
        holder[key] = [value] * random.choice((1, 2, 50, 500))
    elif choice == 6 and isinstance(value, list) and value:
        value.extend(value[:50])
        random.shuffle(value)
    else:
        other, place = _some_place(root, random)
        holder[key] = json.loads(json.dumps(other[place]))
    if not root:
        return b"null"
    text = json.dumps(root[0], ensure_ascii=random.random() < 0.5)
    if random.random() < 0.05:  # a key twice
        text = text.replace("{", '{"schema_version": 1, "kind": "ring", "name": "x", ', 1)
    return text.encode("utf-8", "surrogatepass")


def _some_place(root: list[Any], random: Random) -> tuple[Any, Any]:
    """A holder and the key of one of its values, at any depth."""
    holder: Any = root
    key: Any = 0
    while True:
        inner = holder[key]
        if not isinstance(inner, (dict, list)) or not inner or random.random() < 0.15:
            return holder, key
        holder = inner
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        key = random.choice(keys)


def change_csv(part: bytes, random: Random) -> bytes:
    rows = [line.split(b",") for line in part.split(b"\n")]
    row = random.randrange(len(rows))
    column = random.randrange(len(rows[row]))
    choice = random.randrange(8)
    word = random.choice(WORDS).encode("utf-8", "surrogatepass")
    if choice <= 2:
        rows[row][column] = word
    elif choice == 3:
        for one in rows:
            del one[column : column + 1]
    elif choice == 4:
        for one in rows:
            one.insert(column, one[column] if column < len(one) else word)
    elif choice == 5:
        rows[row] = rows[random.randrange(len(rows))]
    elif choice == 6:
        rows[row] = (rows[row] * random.choice((2, 1000)))[:2000]
    else:
        rows[0][column % len(rows[0])] = word
    return b"\n".join(b",".join(one) for one in rows)


def change_toml(part: bytes, random: Random) -> bytes:
    """A value, a key, or a line or table of it."""
    lines = part.split(b"\n")
    at = random.randrange(len(lines))
    name, equals, value = lines[at].partition(b"=")
    choice = random.randrange(6)
    word = random.choice(VALUES)
    new = word if isinstance(word, str) and random.random() < 0.5 else json.dumps(word)
    said = new.encode("utf-8", "surrogatepass")
    if choice <= 2 and equals:
        lines[at] = name + b"= " + said
    elif choice == 3 and equals:
        lines[at] = said + b" =" + value
    elif choice == 4:
        lines.insert(random.randrange(len(lines)), lines[at])
    else:
        del lines[at]
    return b"\n".join(lines)


def change_query(part: bytes, random: Random) -> bytes:
    page, _, query = part.partition(b"?")
    pairs = parse_qsl(query.decode(), keep_blank_values=True)
    at = random.randrange(len(pairs))
    choice = random.randrange(5)
    word = random.choice(WORDS)
    if choice <= 2:
        pairs[at] = pairs[at][0], word
    elif choice == 3:
        pairs.append((pairs[at][0] if random.random() < 0.5 else word, random.choice(WORDS)))
    else:
        pairs[at] = pairs[random.randrange(len(pairs))][0], pairs[at][1]
    return page + b"?" + urlencode(pairs, errors="surrogatepass").encode()


def change_text(part: bytes, random: Random) -> bytes:
    """A word put in, or in the place of another; or an end cut off."""
    at = random.randrange(len(part) + 1)
    length = random.choice((0, 1, 2, 5, 20))
    word = random.choice(WORDS).encode("utf-8", "surrogatepass")
    choice = random.randrange(10)
    if choice == 0:
        return part[:at]
    if choice == 1:
        return part[at:]
    if choice == 2:
        return part[:at] + part[at : at + 50] * random.choice((2, 20)) + part[at:]
    return part[:at] + word + part[at + length :]


def change_bytes(part: bytes, random: Random) -> bytes:
    """Bytes that are flipped or put in, or another encoding or packing of all of them."""
    choice = random.randrange(12)
    if choice == 0:
        return gzip.compress(part, 1)
    if choice == 1:
        packed = gzip.compress(part, 1)
        return packed[: random.randrange(len(packed))] + random.randbytes(random.randrange(4))
    if choice == 2:
        return part.decode("utf-8", "replace").encode(
            random.choice(("utf-16", "utf-32", "latin-1")), "replace"
        )
    data = bytearray(part)
    for _ in range(random.choice((1, 2, 8))):
        at = random.randrange(len(data) + 1)
        if random.random() < 0.5:
            data[at:at] = random.randbytes(random.choice((1, 2, 4)))
        elif at < len(data):
            data[at] ^= 1 << random.randrange(8)
    return bytes(data)


def pack(part: bytes) -> bytes:
    """The letters of a packed link around whatever is inside."""
    return base64.urlsafe_b64encode(zlib.compress(part, 1)).rstrip(b"=")


def noise(random: Random) -> bytes:
    return random.randbytes(random.choice((0, 1, 16, 300)))


def nested(random: Random) -> bytes:
    """A hundred thousand brackets, closed or not."""
    mark = random.choice((b"[", b'{"a":', b"a = [", b'{"traceEvents":[', b'[{"nodes":', b'"[;'))
    return mark * random.choice((1_000, 100_000)) + b"]" * random.choice((0, 1_000))


def wide(random: Random) -> bytes:
    """A row of a million columns."""
    header = ",".join(random.choice((OPERATOR_COLUMNS, TENSOR_COLUMNS, ("a",)))).encode()
    return header + random.choice((b",a", b",")) * 10**6 + b"\n" + b"1" + b",1" * 10**6


def bomb(random: Random) -> bytes:
    return random.choice(_bombs())


def long_number(random: Random) -> bytes:
    return random.choice((b"", b"-", b"1.", b"1e", b'{"a":', b"a = ")) + b"9" * 10**6


@cache
def _bombs() -> Sequence[bytes]:
    """Small files of many bytes: zeros, an unending text, an unending list, members in a row."""
    starts = (b"\0", b'{"traceEvents": [{"name": "a', b'{"traceEvents": [{},')
    fillers = (b"\0", b"a", b"{},")
    whole = [
        gzip.compress(start + filler * (BOMB_BYTES // len(filler)), 1)
        for start, filler in zip(starts, fillers, strict=True)
    ]
    return [*whole, gzip.compress(b"") * 20_000, pack(b"[" + b" " * 2**23)]


_FROM_NOTHING: Sequence[Callable[[Random], bytes]] = (
    *[noise] * 15, *[nested] * 4, bomb, wide, long_number,
)  # fmt: skip
_FORMS: dict[str, Callable[[bytes, Random], bytes]] = {
    "json": change_json, "csv": change_csv, "toml": change_toml, "query": change_query,
    "bytes": change_bytes,
}  # fmt: skip
