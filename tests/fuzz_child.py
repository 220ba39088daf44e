"""The child process of a fuzz test.

It answers the descriptions from a socket one by one, or that of its command line.
"""

import ast
import sys
from multiprocessing.connection import Connection


def serve(answer):
    """Answer the parent's descriptions through the socket with the number argv[1]. Or print one answer."""
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
