"""Views, arrangement, indexing, gather and scatter."""
