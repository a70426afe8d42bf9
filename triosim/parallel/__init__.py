"""One file for each parallelism: a trace and a plan become the program of every rank."""
