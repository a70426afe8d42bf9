"""The step player: a small component that runs in the browser, so that frames need no server.

Everything is built with createElement and textContent; data never become markup.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import streamlit as st

from triosim.figures.palette import PHASE_COLOURS

HTML = """
<section class="player" tabindex="0" aria-label="Step player. Arrow keys step, space plays.">
  <div class="bar">
    <button type="button" data-do="first" aria-label="To the start">|◀</button>
    <button type="button" data-do="back" aria-label="Step back">◀</button>
    <button type="button" data-do="play" aria-label="Play" class="play">▶ Play</button>
    <button type="button" data-do="next" aria-label="Step forward">▶</button>
    <button type="button" data-do="last" aria-label="To the end">▶|</button>
    <input type="range" min="0" value="0" step="1" aria-label="Step">
    <output class="count"></output>
  </div>
  <p class="said" aria-live="polite"></p>
  <div class="views">
    <svg class="ring" viewBox="-145 -145 290 290" role="img"></svg>
    <div class="held"></div>
  </div>
  <details><summary>Messages of this step</summary><ol class="messages"></ol></details>
</section>
"""

CSS = """
.player { font-family: var(--st-font, sans-serif); color: var(--st-text-color, #262730);
  border-radius: 8px; padding: 4px; }
.player:focus-visible { outline: 2px solid var(--st-primary-color, #0b5ea8); }
.bar { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; }
.bar button { font: inherit; color: inherit; min-width: 40px; height: 38px; cursor: pointer;
  background: var(--st-secondary-background-color, #f4f6f9); border-radius: 8px;
  border: 1px solid var(--st-border-color, rgba(128, 132, 149, 0.5)); }
.bar button:hover { border-color: var(--st-primary-color, #0b5ea8); }
.bar .play { min-width: 92px; }
.bar input { flex: 1 1 140px; min-width: 110px; accent-color: var(--st-primary-color, #0b5ea8); }
.count { min-width: 6.5em; font-variant-numeric: tabular-nums; text-align: right; }
.said { margin: 8px 2px; min-height: 1.4em; }
.views { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; }
.ring { flex: 1 1 17rem; max-width: 23rem; max-height: 60vh; min-width: 0; }
.held { flex: 2 1 20.6rem; min-width: 0; overflow-x: auto; }
.held table { border-collapse: separate; border-spacing: 2px; font-size: 0.75rem; line-height: 1;
  font-variant-numeric: tabular-nums; }
.held th { font-weight: 400; padding: 0 2px; white-space: nowrap; opacity: 0.85; }
.held td { min-width: 1.2rem; height: 20px; text-align: center; border-radius: 3px; padding: 0;
  border: 2px solid transparent; }
.held td.fresh { border-color: var(--st-text-color, #262730); }
.held p { margin: 0 0 4px; font-size: 0.8125rem; }
.messages { margin: 4px 0; padding-left: 2em; font-size: 0.875rem; max-height: 240px;
  overflow: auto; }
summary { cursor: pointer; font-size: 0.875rem; margin-top: 6px; }
/* Else Chromium leaves text where it was when the drawing is scaled. */
svg text { text-rendering: geometricPrecision; font-family: inherit; fill: currentColor;
  text-anchor: middle; dominant-baseline: central; }
@media (max-width: 640px) { .views { gap: 8px; } .count { min-width: 5.5em; } }
"""

JS = """
const SVG = "http://www.w3.org/2000/svg";

function node(kind, attributes, text) {
  const made = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function place(rank, ranks) {
  if (rank < 0) return [0, 0];
  const angle = 2 * Math.PI * rank / ranks;
  return [100 * Math.sin(angle), -100 * Math.cos(angle)];
}

// From the edge of one disc to the edge of the other, bowed so that both ways can be seen.
function path(message, ranks, radius, hub) {
  const [x0, y0] = place(message.from, ranks), [x1, y1] = place(message.to, ranks);
  const length = Math.hypot(x1 - x0, y1 - y0) || 1;
  const dx = (x1 - x0) / length, dy = (y1 - y0) / length;
  // Between neighbours on a crowded circle the label has room outside only.
  const near = ranks > 10 && length < 60 && !hub;
  const bow = near ? -25 : ranks === 2 || length > 120 && !hub ? 12 : 5;
  const mx = (x0 + x1) / 2 - dy * bow * 2, my = (y0 + y1) / 2 + dx * bow * 2;
  const out = message.from < 0 ? 17 : radius, into = message.to < 0 ? 17 : radius;
  const a = [x0 + dx * out, y0 + dy * out], b = [x1 - dx * (into + 3), y1 - dy * (into + 3)];
  const at = (t) => [a, [mx, my], b].reduce((sum, point, k) => {
    const weight = [(1 - t) * (1 - t), 2 * t * (1 - t), t * t][k];
    return [sum[0] + weight * point[0], sum[1] + weight * point[1]];
  }, [0, 0]);
  // All that cross would rest on the middle.
  return { d: `M${a} Q${mx},${my} ${b}`, at, rest: length > 120 && !hub ? 0.22 : 0.5 };
}

function build(root, data) {
  const find = (selector) => root.querySelector(selector);
  const slider = find("input"), count = find(".count"), said = find(".said");
  const ring = find(".ring"), held = find(".held"), list = find(".messages");
  const play = find("[data-do=play]"), total = data.steps.length;
  const radius = Math.min(17, 190 / Math.max(data.ranks, 8));
  // A link may say where to begin; another collective begins at its start.
  const asked = root.dataset.id ? 0 : Number(new URL(location).searchParams.get("step")) || 0;
  const before = root.dataset.id === data.id ? Number(root.dataset.at || 0) : asked;
  let at = Math.max(0, Math.min(Math.round(before), total));
  let moving = 0, frame = 0, last = 0, playing = false;
  root.dataset.id = data.id;
  slider.max = total;

  // The table stays; only what its cells say changes.
  held.replaceChildren();
  const table = document.createElement("table"), cells = [];
  const caption = document.createElement("p");
  caption.textContent = data.whole > 1
    ? `How many ranks' data are added up in each ${data.column}, of ${data.whole}`
    : data.column === "chunk" ? "Which chunks each rank holds"
    : "From which ranks each rank has what is for it";
  const head = table.createTHead().insertRow();
  head.append(...["", ...Array(data.columns).keys()].map((text) => {
    const cell = document.createElement("th");
    cell.textContent = text;
    return cell;
  }));
  head.firstChild.textContent = data.column;
  const body = table.createTBody();
  for (let rank = 0; rank < data.ranks; rank++) {
    const row = body.insertRow(), name = document.createElement("th");
    name.textContent = `rank ${rank}`;
    row.append(name);
    cells.push(Array.from({ length: data.columns }, () => row.insertCell()));
  }
  table.setAttribute("aria-label", caption.textContent);
  held.append(caption, table);

  function paintTable() {
    const now = data.held[at], before = data.held[Math.max(0, at - 1)];
    cells.forEach((row, rank) => row.forEach((cell, column) => {
      const value = now[rank][column], part = value / data.whole;
      cell.textContent = value || "";
      const colour = part >= 1 ? data.colours.whole : data.colours.part;
      const shade = value ? Math.round(part >= 1 ? 100 : 18 + 62 * part) : 0;
      cell.style.background = value
        ? `color-mix(in srgb, ${colour} ${shade}%, transparent)`
        : "color-mix(in srgb, currentColor 7%, transparent)";
      cell.style.color = part >= 1 ? data.colours.onWhole : "inherit";
      cell.classList.toggle("fresh", at > 0 && value !== before[rank][column]);
    }));
  }

  function sentence(step) {
    const first = step.messages[0].text;
    return step.messages.length === 1 ? step.text : `${step.text} For example, ${first}.`;
  }

  let tokens = [];
  function paintRing(step) {
    ring.replaceChildren();
    const defs = node("defs", {});
    for (const kind of ["adds", "keeps"]) {
      const marker = node("marker", { id: `${data.id}-${kind}`, viewBox: "0 0 10 10", refX: 8,
        refY: 5, markerWidth: 5, markerHeight: 5, orient: "auto-start-reverse" });
      marker.append(node("path", { d: "M0 0 L10 5 L0 10 z", fill: data.colours[kind] }));
      defs.append(marker);
    }
    ring.append(defs);
    tokens = [];
    const messages = step < 0 ? [] : data.steps[step].messages;
    const crowded = messages.length > 40;
    for (const message of messages) {
      const kind = message.adds ? "adds" : "keeps";
      const way = path(message, data.ranks, radius, data.switch);
      ring.append(node("path", { d: way.d, fill: "none", stroke: data.colours[kind],
        "stroke-width": crowded ? 0.8 : 1.8, "stroke-opacity": crowded ? 0.5 : 0.9,
        "marker-end": `url(#${data.id}-${kind})` }));
    }
    if (data.switch) {
      ring.append(node("rect", { x: -17, y: -17, width: 34, height: 34, rx: 5,
        fill: data.colours.node, stroke: data.colours.edge, "stroke-width": 1.2 }),
        node("text", { x: 0, y: 0, "font-size": 10 }, "switch"));
    }
    for (let rank = 0; rank < data.ranks; rank++) {
      const [x, y] = place(rank, data.ranks);
      ring.append(node("circle", { cx: x, cy: y, r: radius, fill: data.colours.node,
        stroke: data.colours.edge, "stroke-width": 1.2 }),
        node("text", { x, y, "font-size": Math.max(9, radius * 0.9) }, rank));
    }
    if (crowded) return;
    const size = messages.length > 20 ? 7.5 : 9.5;
    for (const message of messages) {
      const way = path(message, data.ranks, radius, data.switch);
      const label = message.chunks.length > 7 ? `${message.chunks.slice(0, 6)}…` : message.chunks;
      const token = node("g", { class: "token" });
      const width = size * (0.62 * label.length + 0.7);
      token.append(node("rect", { x: -width / 2, y: -size * 0.75, width, height: size * 1.5,
        rx: size * 0.4, fill: data.colours.paper, "stroke-width": 1,
        stroke: data.colours[message.adds ? "adds" : "keeps"] }),
        node("text", { "font-size": size }, label));
      ring.append(token);
      tokens.push([token, way]);
    }
    moveTokens(moving);
  }
  function moveTokens(share) {
    for (const [token, way] of tokens) {
      token.setAttribute("transform", `translate(${way.at(share || way.rest)})`);
    }
  }

  function remember() {
    root.dataset.at = at;
    const here = new URL(location);
    if (at) here.searchParams.set("step", at);
    else here.searchParams.delete("step");
    if (here.href !== location.href) history.replaceState(history.state, "", here);
  }

  function paint() {
    remember();
    slider.value = at;
    slider.setAttribute("aria-valuetext", `step ${at} of ${total}`);
    count.textContent = `step ${at} of ${total}`;
    play.textContent = playing ? "Pause" : "▶ Play";
    play.setAttribute("aria-label", playing ? "Pause" : "Play");
    // Under way to the next step, that step's messages; at rest, those that led here.
    const shown = playing && at < total ? at : at - 1;
    said.textContent = shown >= 0 ? `Step ${shown + 1}: ${sentence(data.steps[shown])}`
      : total ? "At the start: what each rank holds before anything is sent."
      : "One rank alone has nothing to send.";
    ring.setAttribute("aria-label", said.textContent);
    list.replaceChildren(...(shown < 0 ? [] : data.steps[shown].messages).map((message) => {
      const item = document.createElement("li");
      item.textContent = message.text;
      return item;
    }));
    paintTable();
    paintRing(shown);
  }
  function go(step) {
    at = Math.max(0, Math.min(total, step));
    moving = 0;
    paint();
  }
  function stop() {
    playing = false;
    cancelAnimationFrame(frame);
    moving = 0;
  }
  function tick(now) {
    if (!root.isConnected) return stop();
    moving += Math.min(250, now - last) / Math.max(500, Math.min(1100, 14000 / total));
    last = now;
    if (moving >= 1) {
      at += 1;
      moving = 0;
      if (at >= total) {
        stop();
        return paint();
      }
      paint();
    }
    moveTokens(moving);
    frame = requestAnimationFrame(tick);
  }
  function toggle() {
    if (playing) {
      stop();
      return paint();
    }
    if (at >= total) at = 0;
    playing = total > 0;
    moving = 0;
    paint();
    last = performance.now();
    if (playing) frame = requestAnimationFrame(tick);
  }
  const actions = {
    first: () => { stop(); go(0); }, back: () => { stop(); go(at - 1); }, play: toggle,
    next: () => { stop(); go(at + 1); }, last: () => { stop(); go(total); },
  };
  const keys = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last", " ": "play" };
  for (const button of root.querySelectorAll("[data-do]")) {
    button.onclick = () => actions[button.dataset.do]();
  }
  slider.oninput = () => { stop(); go(Number(slider.value)); };
  root.onkeydown = (event) => {
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && event.target.closest("button, summary")) return;
    event.preventDefault();
    event.stopPropagation();
    actions[action]();
  };
  paint();
  return stop;
}

const players = new WeakMap();

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".player");
  const text = JSON.stringify(data), known = players.get(root);
  if (known && known.text === text) return;
  if (known) known.stop();
  players.set(root, { text, stop: build(root, data) });
}
"""
_player = st.components.v2.component("triosim_step_player", html=HTML, css=CSS, js=JS)


def show_player(data: Mapping[str, Any], *, dark: bool) -> None:
    """Mount the player for what `triosim.figures.step_player` returns."""
    digest = hashlib.sha256(json.dumps(data).encode()).hexdigest()[:12]
    colours = {
        "whole": PHASE_COLOURS["optimizer"],
        "onWhole": "#000000",
        "part": PHASE_COLOURS["forward"],
        "adds": PHASE_COLOURS["all-reduce"] if dark else PHASE_COLOURS["recv"],
        "keeps": PHASE_COLOURS["forward"] if dark else PHASE_COLOURS["backward"],
        "node": "#1F3A52" if dark else "#C6E4F5",
        "edge": PHASE_COLOURS["forward"] if dark else PHASE_COLOURS["backward"],
        "paper": "#0E1117" if dark else "#FFFFFF",
    }
    _player(key="step_player", data={**data, "id": f"player-{digest}", "colours": colours})
