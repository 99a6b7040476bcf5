"""The page that the report is poured into: one file, nothing loaded from elsewhere."""

from __future__ import annotations

from string import Template

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1c1e21; --soft: #5b616a; --line: #d9dde3; --box: #f5f6f8;
  --holds: #1a7f37; --fails: #c0202b; --finding: #8a5a00; --error: #7a2e98; --missing: #5b616a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181c; --ink: #e6e8eb; --soft: #a3abb5; --line: #343a42; --box: #1e2329;
    --holds: #57c274; --fails: #ff7b80; --finding: #e3b341; --error: #cf9be8; --missing: #a3abb5;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 54rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: break-word;
}
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 0 0 .5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p { margin: .5rem 0; }
a { color: inherit; }
.soft { color: var(--soft); }
.badge {
  display: inline-block; padding: .05rem .55rem; border-radius: 1rem; border: 1.5px solid;
  font-size: .85rem; font-weight: 600; white-space: nowrap;
}
.holds { color: var(--holds); } .fails { color: var(--fails); }
.finding { color: var(--finding); } .error { color: var(--error); }
.missing { color: var(--missing); border-style: dashed; }
.note { background: var(--box); border-left: 4px solid var(--finding); padding: .5rem .8rem; }
section { border-top: 1px solid var(--line); margin-top: 2rem; padding-top: 1.2rem; }
blockquote { margin: .6rem 0; padding: .1rem .9rem; border-left: 4px solid var(--line); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td {
  text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0;
  border-bottom: 1px solid var(--line);
}
th[scope="row"] { font-weight: 400; }
td.number { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .92em; }
code {
  font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .88em;
  background: var(--box); padding: .1rem .3rem; border-radius: .2rem; overflow-wrap: anywhere;
}
figure { margin: 1rem 0; }
img { display: block; max-width: 100%; height: auto; border-radius: .3rem; background: #ffffff; }
figcaption { font-size: .92rem; color: var(--soft); margin-top: .4rem; }
"""

PAGE = Template(
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>patchdyn: claims of the papers, measured</title>
<style>$style</style>
</head>
<body>
<header>
<h1>Claims of the papers, measured</h1>
<p class="soft">Derived, solved and checked by patchdyn $version.</p>
$notes
</header>
<main>
$body
</main>
<footer>
<section id="provenance">
<h2>Where these numbers come from</h2>
$provenance
</section>
</footer>
</body>
</html>
"""
)
