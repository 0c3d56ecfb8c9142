"""Models of `sbpjax.vision` trained: classes of digits and photos, boxes of shapes, and a network tuned to others."""
