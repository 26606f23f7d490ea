"""What the exit code of a command means; `stoker.cli.main` has the table, with 0 for done."""

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_REJECTS = 3
EXIT_DAMAGED = 4
EXIT_INTERRUPTED = 130
