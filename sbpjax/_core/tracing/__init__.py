"""Tracing: functions of tensors become programs whose inputs and outputs include all reads and writes."""
