"""Collectives: what each algorithm sends, step by step, and what that loads on a topology."""
