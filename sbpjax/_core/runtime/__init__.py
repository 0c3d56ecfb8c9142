"""Who takes part in a run, and what goes between the processes: calls, values, signatures."""
