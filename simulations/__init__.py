"""Everything a person runs: claims and figures of the papers, reports, sweeps and searches.

`positional`, `masked`, `shallow`
    One package per paper: its parameters, claims and figures.
`stated`
    User-defined theories (one file each): the adapter to the tools, and claims of four more papers.
`vision`
    Training on real images (Section 6 of the first paper); needs the extra ``vision``.
`reproduction`
    Runs claims and writes the report.
`sweep`, `maps`, `falsify`, `explorer`
    Grids of problems, regime maps, search for counterexamples, the local page with sliders. They
    work on any theory through `theory`.
`figures`, `files`, `parallel`
    Shared drawings, stored records, worker processes.
`commands`, `cli`
    The command line: one module per command.
"""
