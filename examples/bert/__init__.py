"""A BERT, pre-trained on the sources of Python's standard library and then fine-tuned to classify its packages."""
