"""Rowlock against the limit: the same statements in a bare loop, in the same run."""
