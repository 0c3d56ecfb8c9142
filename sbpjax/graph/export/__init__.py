"""Export: compiled programs as files, and loading them without the model's code."""
