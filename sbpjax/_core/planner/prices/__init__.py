"""What a plan costs in time: computing, moving, and what the compilers do about it."""
