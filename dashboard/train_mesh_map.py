"""The drawing of a mesh: a small component that runs in the browser, so that pointing needs no
server.

Everything is built with createElement and textContent; data never become markup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

HTML = """
<section class="mesh" tabindex="0" aria-label="Ranks by host. Arrow keys choose a rank.">
  <div class="hosts"></div>
  <p class="rank" aria-live="polite"></p>
  <div class="groups" role="group" aria-label="Groups of the chosen rank"></div>
</section>
"""

CSS = """
.mesh { font-family: var(--st-font, sans-serif); color: var(--st-text-color, #262730);
  border-radius: 8px; padding: 4px; font-size: 0.875rem; }
.mesh:focus-visible { outline: 2px solid var(--st-primary-color, #0b5ea8); }
.hosts { display: flex; flex-wrap: wrap; gap: 8px; max-height: 430px; overflow: auto;
  padding: 2px; }
.host { border: 1px solid var(--st-border-color, rgba(128, 132, 149, 0.5)); border-radius: 6px;
  padding: 2px 5px 5px; }
.host.crossed { border-color: var(--st-text-color, #262730); }
.host small { font-size: 0.6875rem; line-height: 1.3; opacity: 0.85; display: block;
  min-height: 4px; }
.ranks { display: grid; gap: 2px; }
.ranks i { font-style: normal; font-size: 0.6875rem; color: #000; border-radius: 3px;
  cursor: pointer; display: flex; align-items: center; justify-content: center;
  height: 1.5rem; width: 1.875rem;
  border: 2px solid transparent; box-sizing: border-box; transition: opacity 0.1s; }
.many .ranks i { height: 1.25rem; width: 1.5625rem; font-size: 0.625rem; }
.crowd .ranks i { height: 13px; width: 13px; font-size: 0; border-width: 1.5px; }
.ranks i.in { border-color: var(--st-text-color, #262730); }
.ranks i.chosen { border-style: double; border-width: 4px;
  border-color: var(--st-text-color, #262730); }
.crowd .ranks i.chosen { border-width: 3px; }
.pointing .ranks i:not(.in) { opacity: 0.22; }
.rank { margin: 8px 2px 4px; min-height: 1.3em; font-weight: 600; }
.groups { display: flex; flex-direction: column; gap: 2px; align-items: flex-start; }
.groups button { font: inherit; color: inherit; text-align: left; cursor: pointer;
  background: none; border: 1px solid transparent; border-radius: 6px; padding: 2px 8px; }
.groups button:hover, .groups button:focus-visible, .groups button.shown {
  border-color: var(--st-border-color, rgba(128, 132, 149, 0.5));
  background: var(--st-secondary-background-color, #f4f6f9); }
.groups b { display: inline-block; min-width: 6.5em; }
@media (max-width: 640px) { .hosts { max-height: 340px; } }
"""

JS = """
const NUMBERED = 256, ROOMY = 64;

function made(kind, name, text) {
  const element = document.createElement(kind);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

function build(root, data) {
  const hosts = root.querySelector(".hosts"), said = root.querySelector(".rank");
  const list = root.querySelector(".groups"), cells = [], boxes = [];
  // A rank that was chosen stays so where another axis is coloured.
  let chosen = Math.min(Number(root.dataset.rank || 0), data.shown - 1);
  let pointed = -1, axis = data.axis;
  hosts.replaceChildren();
  root.classList.toggle("many", data.shown > ROOMY && data.shown <= NUMBERED);
  root.classList.toggle("crowd", data.shown > NUMBERED);
  const colours = data.axes[data.axis].group.map((g) => data.colours[g % data.colours.length]);
  data.hosts.forEach((host, number) => {
    const box = made("div", "host"), ranks = made("div", "ranks");
    ranks.style.gridTemplateColumns = `repeat(${data.columns}, max-content)`;
    if (host.label) box.append(made("small", "", host.label));
    for (const rank of host.ranks) {
      const cell = made("i", "", rank);
      cell.dataset.rank = rank;
      cell.style.background = colours[rank];
      cells[rank] = cell;
      boxes[rank] = box;
      ranks.append(cell);
    }
    box.append(ranks);
    hosts.append(box);
  });

  const rows = data.axes.map((one, number) => {
    const row = made("button"), name = made("b", "", one.name), text = made("span");
    row.type = "button";
    row.append(name, text);
    const show = (shown) => () => {
      axis = shown;
      pointed = shown === number ? chosen : -1;
      paint();
    };
    row.onmouseenter = row.onfocus = show(number);
    row.onmouseleave = row.onblur = show(data.axis);
    return { row, text };
  });
  list.replaceChildren(...rows.map(({ row }) => row));

  function paint() {
    const rank = pointed < 0 ? chosen : pointed, groups = data.axes[axis].group;
    root.classList.toggle("pointing", pointed >= 0);
    for (const box of new Set(boxes)) box.classList.remove("crossed");
    cells.forEach((cell, other) => {
      const inside = groups[other] === groups[rank];
      cell.classList.toggle("in", inside);
      cell.classList.toggle("chosen", other === rank);
      if (inside) boxes[other].classList.add("crossed");
    });
    said.textContent = `Rank ${rank}: ${data.places[rank]}`;
    data.axes.forEach((one, number) => {
      const group = one.group[rank];
      rows[number].text.textContent = `${one.members[group]} \\u00b7 ${one.link[group]}`;
      rows[number].row.classList.toggle("shown", number === axis);
    });
  }
  const rankOf = (event) => {
    const cell = event.target.closest("[data-rank]");
    return cell ? Number(cell.dataset.rank) : -1;
  };
  hosts.onmouseover = (event) => {
    pointed = rankOf(event);
    paint();
  };
  hosts.onmouseleave = () => {
    pointed = -1;
    paint();
  };
  function choose(rank) {
    chosen = Math.max(0, Math.min(data.shown - 1, rank));
    root.dataset.rank = chosen;
    pointed = -1;
    paint();
  }
  hosts.onclick = (event) => {
    if (rankOf(event) >= 0) choose(rankOf(event));
  };
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -data.columns, ArrowDown: data.columns };
  root.onkeydown = (event) => {
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    choose(chosen + step);
    pointed = chosen;
    paint();
    cells[chosen].scrollIntoView({ block: "nearest" });
  };
  root.onblur = () => {
    pointed = -1;
    paint();
  };
  paint();
}

const drawn = new WeakMap();

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".mesh"), text = JSON.stringify(data);
  if (drawn.get(root) === text) return;
  drawn.set(root, text);
  build(root, data);
}
"""
_map = st.components.v2.component("triosim_mesh_map", html=HTML, css=CSS, js=JS)


def show_map(data: Mapping[str, Any]) -> None:
    """Mount the drawing of what `triosim.figures.train_mesh.mesh_map` returns.

    `axis` is the number of the axis whose groups have colours.
    """
    _map(key="mesh_map", data=data)
