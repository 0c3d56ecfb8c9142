"""Op registration: the table of public ops, and the functions derived from its rows."""
