"""Graphs of GPUs, switches and links, from a ring to a leaf-spine of NVSwitch hosts."""
