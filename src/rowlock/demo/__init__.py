"""Three workers, a stream of jobs, and a SIGKILL now and then: what `rowlock demo` shows."""
