// Builds elements from API data. Text of agents becomes text nodes only: no markup is parsed.

export const byId = (id) => document.getElementById(id);

export function element(tag, text = "", kind = "") {
  const created = document.createElement(tag);
  created.textContent = text;
  if (kind) created.className = kind;
  return created;
}

export const plural = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

export function changeCounts(summary) {
  const parts = ["added", "modified", "deleted"].filter((kind) => summary[kind]).map((kind) => `${summary[kind]} ${kind}`);
  return parts.join(", ");
}

const autorunText = (number) => (number === 1 ? "1 runs automatically" : `${number} run automatically`);

// One item of the list of reviews.
export function listItem(summary, selected) {
  const item = element("li");
  const button = element("button");
  button.type = "button";
  button.dataset.agent = summary.agent_id;
  if (selected) button.setAttribute("aria-current", "true");
  button.append(element("bdi", summary.name, "name"), element("span", changeCounts(summary), "counts"));
  if (summary.runs_by_itself) button.append(element("span", autorunText(summary.runs_by_itself), "runs"));
  item.append(button);
  return item;
}

// One change; a long one is collapsed, so that the list stays readable.
export function changeElement(change) {
  const details = element("details", "", change.what);
  const head = element("summary");
  head.append(element("span", change.what, "what"), element("bdi", change.path, "path"));
  if (change.runs) head.append(element("span", change.runs, "runs"));
  details.append(head);
  for (const note of [...sideNotes(change), ...change.notes]) details.append(element("p", note, "note"));
  if (change.diff) details.append(diffElement(change.diff));
  details.open = change.diff.length < 20000;
  return details;
}

function sideNotes(change) {
  const notes = [];
  if (change.old && change.new && change.old.mode !== change.new.mode) notes.push(`mode ${change.old.mode} becomes ${change.new.mode}`);
  if (change.old && change.new && change.old.kind !== change.new.kind) notes.push(`a ${change.old.kind} becomes a ${change.new.kind}`);
  if (!change.old && change.new && change.new.mode !== "0644") notes.push(`${change.new.kind}, mode ${change.new.mode}`);
  return notes;
}

const SIGNS = { "+": "plus", "-": "minus", "@": "hunk", "\\": "aside", "[": "aside" };

function diffElement(text) {
  const block = element("pre");
  block.tabIndex = 0;
  const lines = text.endsWith("\n") ? text.slice(0, -1).split("\n") : text.split("\n");
  for (const line of lines) block.append(element("span", line, SIGNS[line[0]] || "same"), "\n");
  return block;
}

// Shows a problem (RFC 9457) with its conflicting paths.
export function showProblem(error) {
  const box = byId("error");
  box.hidden = !error;
  box.querySelector("h2").textContent = error ? error.message : "";
  const rows = Object.entries(error?.problem?.conflicts ?? {});
  box.querySelector("ul").replaceChildren(...rows.map(([path, reason]) => element("li", `${path}: ${reason}`)));
}
