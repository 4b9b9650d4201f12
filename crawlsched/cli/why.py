"""status"""


def add_parser(c):
    pass
