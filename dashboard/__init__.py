"""What the pages share: links, controls, the pool that simulates, and views of a result."""
