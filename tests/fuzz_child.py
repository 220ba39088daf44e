"""The child process of a fuzz test: it answers one description after the other, or the one of its command line."""

import ast
import sys
from multiprocessing.connection import Connection


def serve(answer):
    """Answer the descriptions of the parent, whose socket the first argument numbers, or print one answer."""
    if not sys.argv[1].isdigit():
        print(answer(ast.literal_eval(sys.argv[1])))
        return
    with Connection(int(sys.argv[1])) as parent:
        while True:
            try:
                described = parent.recv()
            except EOFError:
                break
            parent.send(answer(described))
