"""A living web site on loopback: ten hosts whose pages change, move, vanish and lie, with a log of the truth."""
