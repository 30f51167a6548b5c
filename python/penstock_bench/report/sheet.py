"""The style sheet of the page: light or dark as the reader has it, 400 pixels wide or paper.

Figures lie on white in both, since they are drawn for it. What is wider than the page scrolls in its own box, and a
shadow at the edge tells that there is more.
"""

SHEET = """
:root { color-scheme: light dark; --ink: #1a1c1f; --paper: #fff; --quiet: #555b64; --line: #e3e6ea; --link: #1f4f8f;
  --shade: rgba(20, 30, 50, .28); --clear: rgba(255, 255, 255, 0); }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --paper: #14171b; --quiet: #a7afba; --line: #323942; --link: #8db8f2;
    --shade: rgba(160, 190, 235, .38); --clear: rgba(20, 23, 27, 0); } }
* { box-sizing: border-box; }
body { font: 16px/1.55 "Source Sans 3", "Helvetica Neue", Helvetica, Arial, sans-serif; color: var(--ink);
  background: var(--paper); max-width: 78rem; margin: 0 auto; padding: 2.2rem 18px 4rem; }
h1, h2, h3, p, dl, ol { max-width: 54rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.01em; }
h2 { font-size: 1.18rem; margin: 2.6rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
p { margin: .4rem 0 .8rem; }
a { color: var(--link); }
p.verdict { font-size: 1.12rem; margin: .4rem 0 .6rem; }
p.lead, p.note { color: var(--quiet); }
p.note { font-size: .92rem; }
figure { margin: 1.6rem 0; break-inside: avoid; }
figure svg { width: calc(var(--points) * 1.6px); max-width: 100%; height: auto; display: block; }
.drawn { --paper: #fff; --shade: rgba(20, 30, 50, .28); --clear: rgba(255, 255, 255, 0); color-scheme: light;
  padding: .5rem; width: fit-content; }
figcaption { max-width: 54rem; color: var(--quiet); font-size: .92rem; margin-top: .5rem; }
.wide, .drawn { overflow-x: auto; max-width: 100%; background:
  linear-gradient(to right, var(--paper) 40%, var(--clear)) left -2px top -2px /
    2.7rem calc(100% + 4px) no-repeat local,
  linear-gradient(to left, var(--paper) 40%, var(--clear)) right -2px top -2px /
    2.7rem calc(100% + 4px) no-repeat local,
  linear-gradient(to right, var(--shade), transparent) left / 1rem 100% no-repeat scroll,
  linear-gradient(to left, var(--shade), transparent) right / 1rem 100% no-repeat scroll, var(--paper); }
.wide::-webkit-scrollbar, .drawn::-webkit-scrollbar { height: 8px; }
.wide::-webkit-scrollbar-thumb, .drawn::-webkit-scrollbar-thumb { background: #8a93a0; border-radius: 4px; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums;
  min-width: min(100%, 54rem); }
th { text-align: left; font-weight: 600; border-bottom: 1.5px solid var(--ink); padding: .3rem .9rem .3rem 0;
  vertical-align: bottom; }
td { border-bottom: 1px solid var(--line); padding: .3rem .9rem .3rem 0; vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
td.n, th.n { text-align: right; white-space: nowrap; }
td:first-child { min-width: 9rem; } td:nth-child(2) { white-space: nowrap; }
td:first-child.n, table.plain td:first-child { min-width: 0; }
table.rules td:first-child { min-width: 11rem; } table.rules td:nth-child(2) { font-weight: 600; }
table.prose td { min-width: 5rem; } table.prose td.n { min-width: 0; }
table.prose td:nth-child(2) { white-space: normal; min-width: 11rem; }
.wide + .wide { margin-top: 1.4rem; }
.few { color: var(--quiet); font-style: italic; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.1rem; font-size: .92rem; margin: 0; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
summary { cursor: pointer; color: var(--link); }
.rows { color: var(--quiet); font-size: .78rem; }
sup.rows { line-height: 0; margin-left: .12em; } sup.rows a { text-decoration: none; padding: .3em .25em; }
.rows summary { color: inherit; display: inline; white-space: nowrap; }
details.rows { display: inline; }
.notes { font-size: .82rem; color: var(--quiet); padding-left: 2rem; } .notes li { overflow-wrap: anywhere; }
.back { white-space: nowrap; }
code { font-size: .88em; overflow-wrap: anywhere; }
@media screen {
  sup.rows a { scroll-margin-top: 40vh; }
  .notes li:target { position: fixed; inset: auto 0 0 0; max-height: 40vh; overflow-y: auto; list-style: none;
    padding: .8rem 1.1rem; background: var(--paper); color: var(--ink); border-top: 2px solid var(--link);
    box-shadow: 0 0 1.5rem var(--shade); } }
@media (max-width: 37rem) {
  body { padding-top: 1.2rem; } h1 { font-size: 1.4rem; }
  dl { grid-template-columns: 1fr; } dt { margin-top: .4rem; }
  figure svg { width: calc(var(--points) * 1.35px); max-width: none; }
  figcaption::before { content: "The figure goes on to the right: scroll it. "; font-style: italic; }
  td:first-child, table.rules td:first-child { min-width: 8rem; } }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; } h2, h3 { break-after: avoid; }
  table { font-size: 7.5pt; } td, th { padding-right: .5rem; } td.n, th.n { white-space: normal; }
  td:first-child, td:nth-child(2) { min-width: 0 !important; white-space: normal; }
  .wide, .drawn { overflow: visible; background: none; } figure svg { max-width: 100%; }
  figcaption::before, .back { display: none; }
  .rows { font-size: 6pt; } table.rules td:first-child { min-width: 4.5cm !important; }
  tr { break-inside: avoid; } thead { display: table-header-group; }
  details::details-content { content-visibility: visible; block-size: auto; } }
"""
