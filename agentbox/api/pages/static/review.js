// Reviews of a box: the list, one of them, and the decision. The token lives in this tab's sessionStorage and in no URL.
import { by, change, counted, counts, make, problem, row } from "./shown.js";

const KEY = "agentbox.token";
let token = sessionStorage.getItem(KEY) ?? "";
let shown = null; // the summary of the review on the page
let next = null; // the place of its next page

class Refused extends Error {
  constructor(status, body) {
    super(body?.detail || body?.title || `The box answers ${status}.`);
    this.status = status;
    this.problem = body ?? {};
  }
}

async function ask(method, path, body) {
  const headers = { Authorization: `Bearer ${token}`, Accept: "application/json" };
  if (body) headers["Content-Type"] = "application/json";
  const options = { method, headers, body: body && JSON.stringify(body), credentials: "omit", redirect: "error", cache: "no-store" };
  const answer = await fetch(path, options);
  const told = await answer.json().catch(() => null);
  if (!answer.ok) throw new Refused(answer.status, told);
  return told;
}

const place = (agent) => `/v1/reviews/${encodeURIComponent(agent)}`;
const say = (text) => { by("status").textContent = text; };

// Every action of a person, one at a time: what goes wrong is said on the page, and a token that is not known is asked for again.
async function act(work) {
  if (document.body.hasAttribute("aria-busy")) return;
  problem(null);
  document.body.setAttribute("aria-busy", "true");
  try {
    await work();
  } catch (error) {
    if (error.status === 401) forget();
    problem(error);
  } finally {
    document.body.removeAttribute("aria-busy");
  }
}

function forget() {
  token = "";
  sessionStorage.removeItem(KEY);
  show(null);
  by("list").replaceChildren();
  say("");
  door(true);
  by("token").focus();
}

function door(closed) {
  by("door").hidden = !closed;
  for (const part of [document.querySelector("main"), by("refresh"), by("forget")]) part.hidden = closed;
}

async function list() {
  const { items } = await ask("GET", "/v1/reviews");
  door(false);
  by("list").replaceChildren(...items.map((one) => row(one, one.agent_id === shown?.agent_id)));
  by("none").hidden = items.length > 0;
  say(items.length ? `${counted(items.length, "agent")} waiting.` : "");
  if (shown && !items.some((one) => one.agent_id === shown.agent_id)) show(null);
  return items;
}

function show(summary) {
  shown = summary;
  next = null;
  by("review").hidden = !summary;
  by("changes").replaceChildren();
  for (const one of by("list").querySelectorAll("button")) {
    if (one.dataset.agent === summary?.agent_id) one.setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
  }
  if (!summary) return;
  by("name").replaceChildren(make("bdi", summary.name));
  by("counts").textContent = counts(summary);
  by("agent").textContent = summary.agent_id;
  by("sealed").textContent = summary.sealed_at.slice(0, 19).replace("T", " ");
  by("digest").textContent = summary.digest;
}

async function open(agent) {
  const page = await ask("GET", place(agent));
  show(page.summary);
  add(page);
  const left = page.left_out.map((one) => make("li", `${one.path}: ${one.why}`));
  by("left").hidden = !left.length;
  by("left").querySelector("ul").replaceChildren(...left);
  by("review").focus();
}

function add(page) {
  by("changes").append(...page.changes.map(change));
  next = page.next;
  by("more").hidden = next === null;
}

async function more() {
  const page = await ask("GET", `${place(shown.agent_id)}?at=${next}`);
  if (page.summary.digest !== shown.digest) return open(shown.agent_id);
  const first = by("changes").childElementCount;
  add(page);
  by("changes").children[first]?.querySelector("summary").focus();
}

function sure(question, consequence, answer, kind) {
  by("question").textContent = question;
  by("consequence").textContent = consequence;
  by("sure").textContent = answer;
  by("sure").className = kind;
  const dialog = by("ask");
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}

async function commit() {
  const { agent_id, digest, name, runs_by_itself } = shown;
  const alone = runs_by_itself ? ` ${counted(runs_by_itself, "file")} among them will be run by something where they land.` : "";
  const unseen = next === null ? "" : " Not all of them are on this page yet.";
  if (!(await sure(`Commit the changes of ${name}?`, `${counts(shown)}.${alone}${unseen}`, "Commit", "yes"))) return;
  try {
    const done = await ask("POST", `${place(agent_id)}/commit`, { digest });
    await list();
    say(`${counted(done.changed, "file")} changed in the workspace.`);
  } catch (error) {
    if (error.status === 412) await open(agent_id);
    throw error;
  }
}

async function discard() {
  const { agent_id, name } = shown;
  if (!(await sure(`Discard the changes of ${name}?`, `${counts(shown)}. They are gone then.`, "Discard", "no"))) return;
  await ask("POST", `${place(agent_id)}/discard`);
  await list();
  say("Discarded.");
}

function step(by_how_many) {
  const heads = [...by("changes").querySelectorAll("summary")];
  const at = heads.indexOf(document.activeElement?.closest("details")?.querySelector("summary"));
  heads[Math.min(Math.max(at + by_how_many, 0), heads.length - 1)]?.focus();
}

by("door").addEventListener("submit", (event) => {
  event.preventDefault();
  token = by("token").value.trim();
  act(async () => {
    await list();
    sessionStorage.setItem(KEY, token);
    by("token").value = "";
    by("list").querySelector("button")?.focus();
  });
});
by("list").addEventListener("click", (event) => {
  const agent = event.target.closest("button")?.dataset.agent;
  if (agent) act(() => open(agent));
});
by("refresh").addEventListener("click", () => act(list));
by("forget").addEventListener("click", () => { problem(null); forget(); });
by("more").addEventListener("click", () => act(more));
by("commit").addEventListener("click", () => act(commit));
by("discard").addEventListener("click", () => act(discard));
document.addEventListener("keydown", (event) => {
  const typed = event.target.closest("input, dialog") || event.ctrlKey || event.metaKey || event.altKey;
  if (typed || !shown || !["j", "k"].includes(event.key)) return;
  event.preventDefault();
  step(event.key === "j" ? 1 : -1);
});

act(async () => {
  const [meta, health] = await Promise.all(["/v1/meta", "/health"].map((path) => fetch(path).then((answer) => answer.json())));
  by("box").textContent = meta.name;
  by("dev").hidden = !health.dev;
  if (token) await list();
});
