"""Claims and figures of the papers, and the tools that users run: reports, sweeps, searches.

`positional`, `masked`, `shallow`
    One package per paper: its parameters, claims and figures.
`stated`
    User-defined theories (one file each): the adapter to the tools, and claims of twelve papers.
`vision`
    Training on real images (Section 6 of the first paper); needs the extra ``vision``.
`reproduction`
    Runs claims and writes the report.
`sweep`, `maps`, `falsify`, `explorer`
    Grids of problems, regime maps, search for counterexamples, the local web page. They access
    theories only through `system` and `theories`.
`figures`, `files`, `workers`
    Shared drawings, stored results, worker processes.
`commands`, `cli`
    Command line: one module per command.
"""
