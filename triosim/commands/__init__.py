"""The command line's words beside the base command: one file each."""
