"""Results as files: Chrome/Perfetto trace, CSV, text."""
