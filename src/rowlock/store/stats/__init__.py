"""Statistics: counts, minutes, workers and the server, and what is put together from them."""
