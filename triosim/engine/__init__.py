"""Programs, the executor that runs them, and the timelines that result."""
