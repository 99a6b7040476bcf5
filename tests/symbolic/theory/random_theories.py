"""Generate small random theories that combine all constructs of the language.

There are few index names, so that names are reused and bound indices shadow free ones. Terms of a
sum depend on different indices. Gaussian data occur only in polynomials.
"""

from random import Random

#: Mapping from names to definitions of index sets.
SETS = {
    "room": 'room = Exchangeable("room", n)',
    "person": 'person = Exchangeable("person", m, inside=room)',
    "token": 'token = Exchangeable("token", n)',
    "word": 'word = Exchangeable("word", m)',
}
CHOSEN = (("room", "person"), ("room", "person"), ("token", "word"), ("token",))
FUNCTIONS = (".tanh()", ".sigmoid()", ".softplus()", ".exp()")


def random_theory(seed):
    """Return the source of the theory with a seed."""
    rng = Random(seed)
    sets = list(rng.choice(CHOSEN))
    lines = ['n, m = Size("n"), Size("m")', '(q,) = constants(q="in (0, 1)")']
    lines += [SETS[name] for name in sets]
    plain = list(sets)
    if len(sets) == 2 and rng.random() < 0.4:
        lines.append(f'both = Union("both", {", ".join(sets)})')
        sets.append("both")
    tensors = {"U": ()}
    for letter in "AB"[: rng.randint(1, 2)]:
        tensors[letter] = tuple(rng.choice(sets) for _ in range(rng.choice([1, 2, 2, 3])))
    lines += [
        f'{letter} = Tensor("{letter}", ({"".join(f"{x}, " for x in axes)}))'
        for letter, axes in tensors.items()
    ]
    for letter, axes in tensors.items():
        if len(axes) == 2 and axes[0] == axes[1] != "both" and rng.random() < 0.4:
            lines.append(f'{letter}.fix("diagonal", q)')
    sources, data, random = _sources(rng, sets, plain)
    lines += sources
    arrays = {**tensors, **{name: axes for name, axes in data.items() if name not in random}}
    loss = _Loss(rng, sets, arrays, {name: data[name] for name in random}).text()
    names = ", ".join([*tensors, *data])
    lines += [f"def loss({names}):", f"    return {loss}"]
    lines.append(
        f'THEORY = Theory("random", "none", sizes=(n, m), parameters=({", ".join(tensors)}), '
        f"data=Data({', '.join(data)}), loss=loss)"
    )
    return "\n".join(lines) + "\n"


def _sources(rng, sets, plain):
    """Return the lines of at most two sources, their axes, and the names of Gaussian ones."""
    lines, data, random = [], {}, []
    types = ("colouring", "colouring", "subset", "choice", "given", "gaussian", "gaussian", "pairs")
    for letter, source_type in zip("st", rng.sample(types, rng.randint(0, 2))):
        where = rng.choice(plain)
        data[letter] = (where,)
        if source_type == "colouring":
            lines.append(f'{letter} = Colouring("{letter}", {where}, {{1: q, -2: 1 - q}})')
        elif source_type == "subset":
            data[letter] = (rng.choice(sets),)
            lines.append(f'{letter} = Subset("{letter}", {data[letter][0]}, 1)')
        elif source_type == "given" and "person" in plain and "c" not in data:
            lines.append('c = Choice("c", room)')
            lines.append(
                f'{letter} = Colouring("{letter}", person, {{2: q, -1: 1 - q}}, given={{c: 2}})'
            )
            data |= {"c": ("room",), letter: ("person",)}
        elif source_type in ("gaussian", "pairs"):
            data[letter] = tuple(rng.choice(sets) for _ in range(1 + (source_type == "pairs")))
            by_part = data[letter] == ("both",) and rng.random() < 0.6
            variance = f'{{"{plain[0]}": q, "{plain[1]}": 2}}' if by_part else "q"
            axes = ", ".join(data[letter])
            lines.append(f'{letter} = Gaussian("{letter}", ({axes},), variance={variance})')
            random.append(letter)
        else:
            lines.append(f'{letter} = Choice("{letter}", {where})')
    return lines, data, random


class _Loss:
    """Generate expressions, each as text with the set of its free indices."""

    def __init__(self, rng, sets, arrays, gaussian):
        self.rng, self.sets, self.arrays, self.gaussian = rng, sets, arrays, gaussian
        relations = {f"Same({name})": (name, name) for name in sets}
        if "person" in sets:
            relations["Inside(person, room)"] = ("person", "room")
        self.relations = relations

    def text(self):
        """Return a loss: a sum of terms without free indices."""
        degree = self.rng.choice([2, 2, 4]) if self.gaussian else 0
        terms = [self.summed(number, degree) for number in (1, 2, 3)]
        return " + ".join(["U[()]**2 / 2", *terms, self.joint()])

    def joint(self):
        """Return a sum over two or three indices of one set that does not factorize."""
        where = self.rng.choice(self.sets)
        names = "ijk"[: self.rng.choice([2, 3])]
        leaves = [self.leaf({name: where}, 0) for name in names]
        text = f"(0.2 * {' * '.join(text for text, _ in leaves)} + U[()])"
        text += self.rng.choice(FUNCTIONS)
        for name in sorted(set().union(*(used for _, used in leaves))):
            text = f"({text}).sum({name!r})"
        return text

    def summed(self, number, degree):
        """Return a sum over ``number`` indices of random sets."""
        where = self.rng.choice(self.sets)
        free = {
            name: where if self.rng.random() < 0.6 else self.rng.choice(self.sets)
            for name in "ijk"[:number]
        }
        text, used = self.expression(free, self.rng.choice([2, 3]), degree)
        for name in self.rng.sample(sorted(used), len(used)):
            text = f"({text}).sum({name!r})"
        return text

    def expression(self, free, depth, degree):
        """Return text and the free indices that it depends on; ``free`` maps indices to sets."""
        rng = self.rng
        free = {name: where for name, where in free.items() if rng.random() < 0.85}
        if depth == 0:
            return self.leaf(free, degree)
        operation = rng.choice(
            ["add", "multiply", "multiply", "sum", "sum", "softmax", "function", "function"]
        )
        if operation == "add":
            (a, used), (b, others) = (self.expression(free, depth - 1, degree) for _ in "ab")
            return f"({a} + {b})", used | others
        if operation == "function":
            if degree >= 2:
                a, used = self.expression(free, depth - 1, degree // 2)
                return f"({a})**2", used
            if not degree:
                a, used = self.expression(free, depth - 1, 0)
                return f"(0.4 * {a}){rng.choice(FUNCTIONS)}", used
        name = self.unused(free)
        if operation in ("sum", "softmax") and name is not None:
            return self.bound(operation, name, free, depth, degree)
        own = rng.randint(0, degree)
        a, used = self.expression(free, depth - 1, own)
        b, others = self.expression(free, depth - 1, degree - own)
        return f"{a} * {b}", used | others

    def bound(self, operation, name, free, depth, degree):
        """Return a sum or an average over softmax weights."""
        inner = {**free, name: self.rng.choice(self.sets)}
        body, used = self.expression(inner, depth - 1, degree)
        if operation == "softmax":
            score, others = self.expression(inner, depth - 1, 0)
            if name in others:
                body, used = f"({score}).softmax({name!r}) * {body}", used | others
        if name not in used:
            return body, used
        return f"({body}).sum({name!r})", used - {name}

    def unused(self, free):
        """Return the name of an index that is not free, or ``None``."""
        return self.rng.choice([*sorted(set("ijk") - set(free)), None]) if len(free) < 3 else None

    def leaf(self, free, degree):
        """Return an entry of an array, summed over indices that are not free."""
        rng = self.rng
        tables = self.arrays if rng.random() < 0.85 else self.relations
        if degree and rng.random() < 0.8:
            tables = self.gaussian
        array = rng.choice(list(tables))
        names, new = [], {}
        for where in tables[array]:
            known = [name for name, own in {**free, **new}.items() if own == where]
            left = sorted(set("ijk") - set(free) - set(new))
            if known and (not left or rng.random() < 0.9):
                again = [name for name in known if name not in names]
                names.append(rng.choice(again if again and rng.random() < 0.7 else known))
            elif left:
                new[left[0]] = where
                names.append(left[0])
            else:
                return "U[()]", set()
        text = f"{array}[{', '.join(map(repr, names))}]" if names else f"{array}[()]"
        for name in new:
            text = f"{text}.sum({name!r})"
        return text, set(names) - set(new)
