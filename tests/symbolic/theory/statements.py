"""Source of small valid theories that tests load or alter."""

POSITIONAL = """\
D, C = Size("D", "patches", least=4), Size("C", "patches of a set", least=2, divides="D")
q, nu, beta = constants(q="in (0, 1]", nu="> 0", beta="real")
sets = Exchangeable("set", D / C); patch = Exchangeable("patch", C, inside=sets)
signal = Choice("signal", sets)
s = Colouring("s", patch, {+1: q/2, 0: 1 - q, -1: q/2}, given={signal: +1})
A = Tensor("A", (patch, patch), start=0); A.fix("diagonal", beta); v = Tensor("v", start=nu**0.5)
def model(A, v, s):
    O = D * (A["i", "j"].softmax(over="j") * v * s["j"]).sum("j")
    return (O**3 + nu * O).sum("i")
THEORY = Theory("positional", "Jelassi, Sander, Li (NeurIPS 2022)", sizes=(D, C),
                parameters=(A, v), data=Data(signal, s),
                loss=lambda A, v, s: model(A, v, s).softplus_of_minus(),
                names={"v": "alpha", "A[same set]": "gamma", "A[other set]": "rho"})
"""

#: Signed coordinates: a product of two layers fitted to a target, with weighted errors.
FLIPS = """\
d = Size("d", "coordinates", least=2)
t, = constants(t="> 0")
coordinate = Signed("coordinate", d)
W = Tensor("W", (coordinate, coordinate), start=0.1)
V = Tensor("V", (coordinate, coordinate), start=0.1)
T = Tensor("T", (coordinate, coordinate, coordinate, coordinate), start=1)
eye = Same(coordinate)
def loss(W, V, T):
    error = (W["i", "j"] * V["j", "k"]).sum("j") - t * eye["i", "k"]
    return 0.5 * (1 + (T["i", "i", "k", "k"] * error**2).tanh()).log().sum("k").sum("i")
THEORY = Theory("flips", "none", sizes=(d,), parameters=(W, V, T), loss=loss)
"""

#: All elementwise functions, a colouring of an outer set, a tensor with three axes.
COLOURS = """\
n, m = Size("n", "rooms"), Size("m", "people in a room", least=2)
p, = constants(p="in (0, 1)")
room = Exchangeable("room", n); person = Exchangeable("person", m, inside=room)
c = Colouring("c", room, {1: p, 2: 1 - p})
s = Colouring("s", person, {0.5: 1 - p, -1: p})
host = Choice("host", person)
U = Tensor("U", (person, room)); B = Tensor("B", (person, person, person))
w = Tensor("w", room)
inside = Inside(person, room)
def loss(U, B, w, c, s, host):
    heard = (B["i", "j", "k"] * s["j"] * s["k"]).sum("j").sum("k") / (1 + m * n)
    felt = heard + (inside["i", "r"] * w["r"] * c["r"]).sum("r") + s["i"] * host["i"]
    score = (U["i", "r"] * c["r"] + w["r"] * s["i"].tanh()).softmax(over="r")
    chosen = (score * c["r"]).sum("r")
    return ((chosen * felt.sigmoid()).exp() / (2 + chosen) ** 1.5).sum("i").softplus()
THEORY = Theory("colours", "none", sizes=(n, m), parameters=(U, B, w), data=Data(c, s, host),
                loss=loss)
"""
