"""Formulas in sentences: recognition and conversion to LaTeX."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from symbolic.core.prose import latex, pieces

SENTENCES = {
    "For all t there exists alpha(t) such that v(t) = alpha(t) w*.": (
        r"For all $t$ there exists $\alpha(t)$ such that $v(t) = \alpha(t)\, w^{*}$."
    ),
    "|rho(t+1)| <= |rho(t)| + eta polylog(d) alpha^p (1/D + Gamma G^(p-1)/D): it holds": (
        r"$\lvert \rho(t+1) \rvert \le \lvert \rho(t) \rvert + \eta\, \mathrm{polylog}(d)\, "
        r"\alpha^{p}\, (1/D + \Gamma\, G^{p-1}/D)$: it holds"
    ),
    "Top_C of the inner products <p_i, p_j> does not meet S_l.": (
        r"$\mathrm{Top}_{C}$ of the inner products $\langle p_{i}, p_{j} \rangle$ does not meet "
        r"$S_{l}$."
    ),
    "A set holds A = P^T P. A row of A and an A_ij; a random set has n = a - b.": (
        r"A set holds $A = P^{T}\, P$. A row of $A$ and an $A_{ij}$; a random set has $n = a - b$."
    ),
    "P[y f*(X) > 0] = 1 - d^(-omega(1)), D^Omega(1), O~(P^{-kappa_s})": (
        r"$P[y\, f^{*}(X) > 0] = 1 - d^{-\omega(1)}$, $D^{\Omega(1)}$, $\tilde{O}(P^{-\kappa_{s}})$"
    ),
    "p's Phi_{p->v_{k,m}}, h' = c_h p; the D x D model (sigma_A > 0)": (
        r"$p$'s $\Phi_{p\to v_{k,m}}$, $h' = c_{h}\, p$; the $D \times D$ model ($\sigma_{A} > 0$)"
    ),
    "E[ s(-F) (signal set + rest) ], sqrt(D), T1 = max |rho|, d(gamma - rho)/dt": (
        r"$E[s(-F) (\text{signal set }+\text{ rest})]$, $\sqrt{D}$, $T_{1} = \max\, \lvert \rho "
        r"\rvert$, $d(\gamma - \rho)/dt$"
    ),
    "(b) holds in 10 of 10 problems (Theorem 4.1), (3, 5), d 0.07, (1) learns; -1 and 1.2e-10": (
        r"(b) holds in 10 of 10 problems (Theorem 4.1), (3, 5), $d$ 0.07, (1) learns; $-1$ and "
        r"$1.2 \times 10^{-10}$"
    ),
    "Figure 1b, but -(Delta/2z) log P and 2 z": (
        r"Figure 1b, but $-(\Delta/2z)\, \log\, P$ and $2\, z$"
    ),
    "`lemma_4_3` and *exactly* what leading_rho_over_gamma is; the run(s)": (
        r"\texttt{lemma\_4\_3} and \emph{exactly} what leading\_rho\_over\_gamma is; the run(s)"
    ),
    "alpha*^2 is one-layer, x^2^3, and A_hat": (
        r"${\alpha^{*}}^{2}$ is one-layer, ${x^{2}}^{3}$, and $\hat{A}$"
    ),
    "unclosed (alpha and |rho": r"unclosed ($\alpha$ and \textbar{}$\rho$",
}


@pytest.mark.parametrize(("sentence", "typeset"), SENTENCES.items())
def test_latex_of_sentences(sentence, typeset):
    assert latex(sentence) == typeset


WORDS = "the A a of alpha f(t) D C-1 x^p (1) | < > >= = - * ' \" [ ] ( ) { } _ ^ ` ~ 3 1e-3 é ∞ \\"


@given(st.lists(st.sampled_from([*WORDS.split(), " "]), max_size=12).map("".join))
@example("{_the")
@example("|a| <b, c> *x* ''s")
def test_pieces_join_to_the_sentence_and_braces_balance(sentence):
    parts = pieces(sentence)
    assert "".join(piece.source for piece in parts) == sentence
    assert all(piece.source for piece in parts)
    for piece in parts:
        if piece.category == "math":
            braces = re.sub(r"\\[{}]", "", piece.shown)
            assert braces.count("{") == braces.count("}")
            assert not re.search(r"[_^](?!\{)", re.sub(r"\\_", "", piece.shown))


def test_long_formulas_are_displayed():
    sentence = 'Lemma "gamma(t+1) = gamma(t) + eta alpha^p Gamma G^(p-1)", with alpha > 0 here.'
    in_line = latex(sentence)
    (formula,) = (piece.shown for piece in pieces(sentence) if piece.shown.startswith(r"\gamma"))
    assert in_line.count("equation*") == 0
    shown = latex(sentence, widest=20)
    assert shown.count(r"\begin{equation*}") == shown.count(r"\end{equation*}") == 1
    assert f'{formula}\\text{{",}}' in shown.replace("''", '"')
    assert shown.endswith(r" with $\alpha > 0$ here.")
    assert latex(sentence, widest=len(formula)) == in_line
