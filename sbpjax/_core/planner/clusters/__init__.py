"""Performance model of training steps on clusters: sizes of a transformer, layouts, step time, memory, search."""
