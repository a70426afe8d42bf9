"""Slow, independent arithmetic: follow every message link by link."""

import itertools

import numpy as np


def loads(path, pairs, count):
    """Bytes on `count` links; `path(a, b)` lists links and shares, `pairs` are (a, b, bytes)."""
    total = np.zeros(count)
    for a, b, size in pairs:
        for link, share in path(a, b):
            total[link] += share * size
    return total


def ordered_pairs(groups, size):
    return [(a, b, size) for group in groups for a, b in itertools.permutations(group, 2)]


def links_between(topology):
    """The links from each node to each other one that they join."""
    found = {}
    for link, (a, b) in enumerate(zip(*(end.tolist() for end in topology.ends()), strict=True)):
        found.setdefault((a, b), []).append(link)
    return found


def net_bytes(topology, loads):
    """What enters each node less what leaves it."""
    source, target = topology.ends()
    nodes = int(max(source.max(), target.max())) + 1
    return np.bincount(target, loads, nodes) - np.bincount(source, loads, nodes)


def as_arrays(pairs):
    """Sources, targets and bytes of pairs (a, b, bytes)."""
    source, target, size = zip(*pairs, strict=True) if pairs else ((), (), ())
    return np.array(source, dtype=int), np.array(target, dtype=int), np.array(size, dtype=float)
