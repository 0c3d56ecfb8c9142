"""Pipeline parallelism: schedules, tasks, and transfers between stages."""
