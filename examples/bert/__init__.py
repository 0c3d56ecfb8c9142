"""A BERT, pre-trained on the sources of Python's standard library and then taught to tell its packages apart."""
