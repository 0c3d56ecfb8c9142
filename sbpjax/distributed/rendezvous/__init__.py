"""How the processes of a run find each other, and what happens when one fails."""
