"""Runs in the plane of the two scalars."""


def draw(data, figure):
    axes = figure.subplots()
    return {"run": axes.plot(data["a"], data["b"])[0]}
