// The style sheet of the page that `show` writes: light or dark as the reader's system is, nothing from
// outside.
#pragma once

#include <string_view>

namespace packtrain {

inline constexpr std::string_view kShowStyle = R"css(
:root { color-scheme: light dark; --ink: #1c2127; --soft: #5c6672; --line: #dfe3e8; --paper: #ffffff;
  --panel: #f5f7f9; --accent: #2b6cb0; --fill: #5a93cf; --warn: #b03a2e; --warn-panel: #fbeeec; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ed; --soft: #98a3b0; --line: #2c333b; --paper: #111418;
  --panel: #1a1f25; --accent: #7db4ee; --fill: #4a80b8; --warn: #f0857a; --warn-panel: #2e1c1b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 36px 24px 64px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 44px 0 14px; }
h3 { font-size: 13px; margin: 0 0 6px; color: var(--soft); font-weight: 600; }
.lead { color: var(--soft); margin: 6px 0 22px; }
.facts { display: flex; flex-wrap: wrap; gap: 10px; margin: 0; }
.facts div { background: var(--panel); border-radius: 8px; padding: 10px 16px; min-width: 108px; }
.facts dt { color: var(--soft); font-size: 12px; }
.facts dd { margin: 0; font-size: 19px; font-weight: 600; font-variant-numeric: tabular-nums; }
.facts dd.words { font-size: 14px; line-height: 28px; font-weight: 500; overflow-wrap: anywhere; }
.sheet { display: grid; grid-template-columns: repeat(auto-fill, minmax(128px, 1fr)); gap: 14px 12px; }
figure { margin: 0; min-width: 0; }
figure img, figure svg, .box { display: block; width: 100%; aspect-ratio: 4 / 3; border-radius: 6px;
  background: var(--panel); }
figure img { object-fit: contain; }
.box { padding: 8px 10px; overflow: hidden; font-size: 11px; line-height: 1.4; overflow-wrap: anywhere; }
.box.text { white-space: pre-line; }
.box.plain { display: flex; flex-direction: column; justify-content: center; text-align: center; font-size: 12px; }
.box.plain span { color: var(--soft); }
.box.damaged { background: var(--warn-panel); color: var(--warn); border: 1px dashed var(--warn); }
.box.damaged b { display: block; font-size: 13px; }
figcaption { font-size: 12px; line-height: 1.35; padding-top: 5px; }
figcaption b, figcaption span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
figcaption b { font-weight: 600; }
figcaption span, .note, .said { color: var(--soft); }
.said { font-size: 11px; line-height: 1.35; margin: 4px 0 0; max-height: 2.7em; overflow: hidden; }
.note { font-size: 13px; margin: 8px 0 0; }
.pair { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 12px 40px; }
.pair h2 { margin-top: 44px; }
.beside { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 1fr) minmax(0, 1fr); gap: 12px 32px; }
svg { display: block; width: 100%; height: auto; }
svg text { font-size: 11px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.end { text-anchor: end; } .middle { text-anchor: middle; }
.grid { stroke: var(--line); fill: none; } .square { stroke-dasharray: 4 4; }
.bar { fill: var(--fill); } .bar:hover { fill: var(--accent); }
.area { fill: var(--fill); stroke: var(--accent); }
.mean { stroke: var(--ink); stroke-dasharray: 5 4; fill: none; }
.dot { fill: var(--fill); fill-opacity: .55; stroke: var(--accent); stroke-opacity: .8; }
.wave { fill: var(--fill); stroke: var(--accent); stroke-width: .6; }
.bars { columns: 2; column-gap: 40px; font-size: 13px; }
.row { display: grid; grid-template-columns: 120px 1fr 64px; gap: 10px; align-items: center; break-inside: avoid;
  padding: 2px 0; }
.name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; text-align: right; }
.track { background: var(--panel); height: 12px; border-radius: 3px; }
.track i { display: block; height: 100%; background: var(--fill); border-radius: 3px; min-width: 1px; }
.count { color: var(--soft); font-variant-numeric: tabular-nums; }
.list ol { list-style: none; margin: 0; padding: 0; font-size: 13px; }
.list li { display: flex; justify-content: space-between; gap: 12px; padding: 2px 0; }
.list li span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.list li b { font-weight: 500; color: var(--soft); font-variant-numeric: tabular-nums; }
@media (max-width: 720px) { .bars { columns: 1; } .beside, .pair { grid-template-columns: minmax(0, 1fr); } }
@media print { main { max-width: none; } }
)css";

}  // namespace packtrain
