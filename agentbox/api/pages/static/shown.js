// What the API says, as elements. Text of agents goes in as text nodes only: nothing here parses markup.

export const by = (id) => document.getElementById(id);

export function make(tag, text = "", kind = "") {
  const found = document.createElement(tag);
  found.textContent = text;
  if (kind) found.className = kind;
  return found;
}

export const counted = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

export function counts(summary) {
  const parts = ["added", "modified", "deleted"].filter((what) => summary[what]).map((what) => `${summary[what]} ${what}`);
  return parts.join(", ");
}

const alone = (number) => (number === 1 ? "1 runs by itself" : `${number} run by themselves`);

// One row of the list of branches.
export function row(summary, chosen) {
  const item = make("li");
  const button = make("button");
  button.type = "button";
  button.dataset.agent = summary.agent_id;
  if (chosen) button.setAttribute("aria-current", "true");
  button.append(make("bdi", summary.name, "name"), make("span", counts(summary), "counts"));
  if (summary.runs_by_itself) button.append(make("span", alone(summary.runs_by_itself), "runs"));
  item.append(button);
  return item;
}

// One change: closed while it is long, so that the list can be read first.
export function change(one) {
  const found = make("details", "", one.what);
  const head = make("summary");
  head.append(make("span", one.what, "what"), make("bdi", one.path, "path"));
  if (one.runs) head.append(make("span", one.runs, "runs"));
  found.append(head);
  for (const note of [...sides(one), ...one.notes]) found.append(make("p", note, "note"));
  if (one.diff) found.append(diff(one.diff));
  found.open = one.diff.length < 20000;
  return found;
}

function sides(one) {
  const told = [];
  if (one.old && one.new && one.old.mode !== one.new.mode) told.push(`mode ${one.old.mode} becomes ${one.new.mode}`);
  if (one.old && one.new && one.old.kind !== one.new.kind) told.push(`a ${one.old.kind} becomes a ${one.new.kind}`);
  if (!one.old && one.new && one.new.mode !== "0644") told.push(`${one.new.kind}, mode ${one.new.mode}`);
  return told;
}

const SIGNS = { "+": "plus", "-": "minus", "@": "hunk", "\\": "aside", "[": "aside" };

function diff(text) {
  const found = make("pre");
  found.tabIndex = 0;
  const lines = text.endsWith("\n") ? text.slice(0, -1).split("\n") : text.split("\n");
  for (const line of lines) found.append(make("span", line, SIGNS[line[0]] || "same"), "\n");
  return found;
}

// A problem (RFC 9457) with the paths that it names.
export function problem(error) {
  const box = by("error");
  box.hidden = !error;
  box.querySelector("h2").textContent = error ? error.message : "";
  const rows = Object.entries(error?.problem?.conflicts ?? {});
  box.querySelector("ul").replaceChildren(...rows.map(([path, why]) => make("li", `${path}: ${why}`)));
}
