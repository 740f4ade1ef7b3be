"""The demo: three workers, a stream of jobs, and a SIGKILL now and then."""
