def markdown(record):
    return "x"


def plot(record, path):
    pass
