"""placeholder"""


def run(a):
    "x"
    return 0
