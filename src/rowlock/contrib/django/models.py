"""Models: none; but Django tells only apps with this module of `migrate`."""
