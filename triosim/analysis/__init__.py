"""What a timeline says: breakdown, communication, memory, checks."""
