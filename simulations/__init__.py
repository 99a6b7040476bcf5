"""What a person runs: claims, figures, the report, sweeps and searches, the command line.

``claims`` and ``figures`` hold one module each, ``data`` what a figure draws; ``claim`` says what a
claim is; ``reproduce`` runs them (``workers``, ``folder``, ``report``), ``parallel`` in processes
side by side. What several claims look at is computed once in ``runs``, ``large_D``,
``training_runs``, ``sample_sizes``, ``start_runs``, ``transfer_runs`` and ``masked_runs``;
``intervals`` are those over a few runs. ``systems`` describes each theory to ``sweep``, ``maps``
and ``falsify``, which know none by name. ``certified`` proves one invariant in ball arithmetic,
``association_boundary`` follows its boundary. ``strategies`` draws problems for tests. ``commands``
has one module per command.
"""
