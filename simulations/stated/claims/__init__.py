"""Claims of papers whose theories are in theory files, one module each; imports no solver."""

from simulations.reproduction.claim import Paper

#: Mapping from the id of a claim to its module in this package.
CLAIMS = {
    "theory-teacher": "teacher",
    "theory-in-context": "in_context",
    "theory-look-up": "look_up",
    "theory-induction": "induction",
    "theory-factual-recall": "factual_recall",
    "theory-sparse-attention": "sparse_attention",
    "theory-markov-chain": "markov_chain",
    "theory-statistical-induction": "statistical_induction",
    "theory-causal-structure": "causal_structure",
    "saad-solla": "saad_solla",
    "single-location": "single_location",
    "semantic-positional": "semantic_positional",
    "saad-solla-sgd": "saad_solla_sgd",
}
_SAAD_SOLLA = Paper("Saad, Solla", "On-line Learning in Soft Committee Machines", "PRE 52, 1995")
#: Mapping from the id of a claim to its paper.
PAPERS = {
    "theory-teacher": Paper(
        "Zhang, Zhao, Gu, Cao",
        "Transformers Trained via Gradient Descent Can Provably Learn a Class of Teacher Models",
        "arXiv 2603.22801",
    ),
    "theory-in-context": Paper(
        "Zhang, Singh, Latham, Saxe",
        "Training Dynamics of In-Context Learning in Linear Attention",
        "ICML 2025",
    ),
    "theory-look-up": Paper(
        "Huang, Cheng, Liang", "In-context Convergence of Transformers", "ICML 2024"
    ),
    "theory-induction": Paper(
        "Musat, Pimentel, Noci, Stolfo, Sachan, Hofmann",
        "On the Emergence of Induction Heads for In-Context Learning",
        "arXiv 2511.01033",
    ),
    "theory-factual-recall": Paper(
        "Nichani, Lee, Bietti",
        "Understanding Factual Recall in Transformers via Associative Memories",
        "ICLR 2025",
    ),
    "theory-sparse-attention": Paper(
        "Zucchet, d'Angelo, Lampinen, Chan",
        "The Emergence of Sparse Attention: Impact of Data Distribution and Benefits of Repetition",
        "arXiv 2505.17863",
    ),
    "theory-markov-chain": Paper(
        "Makkuva, Bondaschi, Ekbote, Girish, Nagle, Kim, Gastpar",
        "Local to Global: Learning Dynamics and Effect of Initialization for Transformers",
        "arXiv 2406.03072",
    ),
    "theory-causal-structure": Paper(
        "Nichani, Damian, Lee",
        "How Transformers Learn Causal Structure with Gradient Descent",
        "ICML 2024",
    ),
    "theory-statistical-induction": Paper(
        "Edelman, Edelman, Goel, Malach, Tsilivis",
        "The Evolution of Statistical Induction Heads: In-Context Learning Markov Chains",
        "NeurIPS 2024",
    ),
    "saad-solla": _SAAD_SOLLA,
    "saad-solla-sgd": _SAAD_SOLLA,
    "single-location": Paper(
        "Marion, Berthier, Biau, Boyer",
        "Attention layers provably solve single-location regression",
        "ICLR 2025",
    ),
    "semantic-positional": Paper(
        "Cui, Behrens, Krzakala, Zdeborova",
        "A Phase Transition between Positional and Semantic Learning in a Solvable Model of "
        "Dot-Product Attention",
        "NeurIPS 2024",
    ),
}
