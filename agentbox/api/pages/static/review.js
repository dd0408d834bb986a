// Reviews of a box: the list, one review, and the decision. The token is stored in this tab's sessionStorage only.
import { byId, changeElement, changeCounts, element, listItem, plural, showProblem } from "./elements.js";

const KEY = "agentbox.token";
let token = sessionStorage.getItem(KEY) ?? "";
let current = null; // the summary of the open review
let next = null; // the position of its next page

class ApiError extends Error {
  constructor(status, body) {
    super(body?.detail || body?.title || `The box returned ${status}.`);
    this.status = status;
    this.problem = body ?? {};
  }
}

async function request(method, path, body) {
  const headers = { Authorization: `Bearer ${token}`, Accept: "application/json" };
  if (body) headers["Content-Type"] = "application/json";
  const options = { method, headers, body: body && JSON.stringify(body), credentials: "omit", redirect: "error", cache: "no-store" };
  const response = await fetch(path, options);
  const data = await response.json().catch(() => null);
  if (!response.ok) throw new ApiError(response.status, data);
  return data;
}

const reviewPath = (agent) => `/v1/reviews/${encodeURIComponent(agent)}`;
const setStatus = (text) => { byId("status").textContent = text; };

// Runs one user action at a time. Errors appear on the page; for an unknown token the login form returns.
async function act(work) {
  if (document.body.hasAttribute("aria-busy")) return;
  showProblem(null);
  document.body.setAttribute("aria-busy", "true");
  try {
    await work();
  } catch (error) {
    if (error.status === 401) forgetToken();
    showProblem(error);
  } finally {
    document.body.removeAttribute("aria-busy");
  }
}

function forgetToken() {
  token = "";
  sessionStorage.removeItem(KEY);
  show(null);
  byId("list").replaceChildren();
  setStatus("");
  showLogin(true);
  byId("token").focus();
}

function showLogin(visible) {
  byId("login").hidden = !visible;
  for (const part of [document.querySelector("main"), byId("refresh"), byId("forget")]) part.hidden = visible;
}

async function list() {
  const { items } = await request("GET", "/v1/reviews");
  showLogin(false);
  byId("list").replaceChildren(...items.map((summary) => listItem(summary, summary.agent_id === current?.agent_id)));
  byId("none").hidden = items.length > 0;
  setStatus(items.length ? `${plural(items.length, "agent")} waiting.` : "");
  if (current && !items.some((summary) => summary.agent_id === current.agent_id)) show(null);
  return items;
}

function show(summary) {
  current = summary;
  next = null;
  byId("review").hidden = !summary;
  byId("changes").replaceChildren();
  for (const button of byId("list").querySelectorAll("button")) {
    if (button.dataset.agent === summary?.agent_id) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  if (!summary) return;
  byId("name").replaceChildren(element("bdi", summary.name));
  byId("counts").textContent = changeCounts(summary);
  byId("agent").textContent = summary.agent_id;
  byId("sealed").textContent = summary.sealed_at.slice(0, 19).replace("T", " ");
  byId("digest").textContent = summary.digest;
}

async function open(agent) {
  const page = await request("GET", reviewPath(agent));
  show(page.summary);
  add(page);
  const skippedItems = page.left_out.map((skipped) => element("li", `${skipped.path}: ${skipped.why}`));
  byId("left").hidden = !skippedItems.length;
  byId("left").querySelector("ul").replaceChildren(...skippedItems);
  byId("review").focus();
}

function add(page) {
  byId("changes").append(...page.changes.map(changeElement));
  next = page.next;
  byId("more").hidden = next === null;
}

async function more() {
  const page = await request("GET", `${reviewPath(current.agent_id)}?at=${next}`);
  if (page.summary.digest !== current.digest) return open(current.agent_id);
  const first = byId("changes").childElementCount;
  add(page);
  byId("changes").children[first]?.querySelector("summary").focus();
}

function confirmAction(question, consequence, label, kind) {
  byId("question").textContent = question;
  byId("consequence").textContent = consequence;
  byId("sure").textContent = label;
  byId("sure").className = kind;
  const dialog = byId("ask");
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}

async function commit() {
  const { agent_id, digest, name, runs_by_itself } = current;
  const autorun = runs_by_itself ? ` ${plural(runs_by_itself, "file")} among them will be run automatically in the workspace.` : "";
  const unseen = next === null ? "" : " Not all of them are on this page yet.";
  if (!(await confirmAction(`Commit the changes of ${name}?`, `${changeCounts(current)}.${autorun}${unseen}`, "Commit", "yes"))) return;
  try {
    const done = await request("POST", `${reviewPath(agent_id)}/commit`, { digest });
    await list();
    setStatus(`${plural(done.changed, "file")} changed in the workspace.`);
  } catch (error) {
    if (error.status === 412) await open(agent_id);
    throw error;
  }
}

async function discard() {
  const { agent_id, name } = current;
  if (!(await confirmAction(`Discard the changes of ${name}?`, `${changeCounts(current)}. This cannot be undone.`, "Discard", "no"))) return;
  await request("POST", `${reviewPath(agent_id)}/discard`);
  await list();
  setStatus("Discarded.");
}

function moveFocus(offset) {
  const heads = [...byId("changes").querySelectorAll("summary")];
  const index = heads.indexOf(document.activeElement?.closest("details")?.querySelector("summary"));
  heads[Math.min(Math.max(index + offset, 0), heads.length - 1)]?.focus();
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  act(async () => {
    await list();
    sessionStorage.setItem(KEY, token);
    byId("token").value = "";
    byId("list").querySelector("button")?.focus();
  });
});
byId("list").addEventListener("click", (event) => {
  const agent = event.target.closest("button")?.dataset.agent;
  if (agent) act(() => open(agent));
});
byId("refresh").addEventListener("click", () => act(list));
byId("forget").addEventListener("click", () => { showProblem(null); forgetToken(); });
byId("more").addEventListener("click", () => act(more));
byId("commit").addEventListener("click", () => act(commit));
byId("discard").addEventListener("click", () => act(discard));
document.addEventListener("keydown", (event) => {
  const typed = event.target.closest("input, dialog") || event.ctrlKey || event.metaKey || event.altKey;
  if (typed || !current || !["j", "k"].includes(event.key)) return;
  event.preventDefault();
  moveFocus(event.key === "j" ? 1 : -1);
});

act(async () => {
  const [meta, health] = await Promise.all(["/v1/meta", "/health"].map((path) => fetch(path).then((response) => response.json())));
  byId("box").textContent = meta.name;
  byId("dev").hidden = !health.dev;
  if (token) await list();
});
