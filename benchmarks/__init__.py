"""The numbers that the README quotes, each reproducible by one command."""
