"""Models of `sbpjax.vision` trained: classes of digits and photos, boxes of shapes, a network tuned to other classes."""
