"""Pipeline parallelism: schedules, tasks, and what goes from stage to stage."""
