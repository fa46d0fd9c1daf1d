"use strict";

const PERIOD = 2000;
let token = "";
const shown = new Map();

function ask(path, options = {}) {
  const headers = token ? { ...options.headers, Authorization: `Bearer ${token}` } : options.headers;
  return fetch(path, { ...options, headers, cache: "no-store" });
}

async function told(path) {
  const answer = await ask(path);
  if (answer.status === 401) {
    document.getElementById("access").hidden = false;
    throw new Error("A token is needed.");
  }
  if (!answer.ok) throw new Error((await answer.json()).error);
  return answer;
}

function say(text) {
  const state = document.getElementById("state");
  if (state.textContent !== text) state.textContent = text;
}

// ---- models ----

async function list() {
  const { models } = await (await told("/v2/models")).json();
  const wanted = new Set();
  for (const { name, versions } of models) {
    for (const version of versions) {
      wanted.add(key(name, version));
      if (!shown.has(key(name, version))) await add(name, version);
    }
  }
  for (const [which, section] of shown) {
    if (!wanted.has(which)) {
      section.remove();
      shown.delete(which);
    }
  }
}

const key = (name, version) => JSON.stringify([name, version]);

async function add(name, version) {
  const address = `/v2/models/${encodeURIComponent(name)}/versions/${version}`;
  const model = await (await told(address)).json();
  const section = document.getElementById("model").content.cloneNode(true).firstElementChild;
  section.querySelector("h2").textContent = `${name}, version ${version}`;
  const rows = section.querySelector("tbody");
  for (const [what, tensors] of [["Input", model.inputs], ["Output", model.outputs]]) {
    for (const tensor of tensors) {
      const row = rows.insertRow();
      for (const text of [what, tensor.name, tensor.datatype, `[${tensor.shape.join(", ")}]`]) row.insertCell().textContent = text;
    }
  }
  section.querySelector(".graph").addEventListener("toggle", (event) => draw(event.target, address, name), { once: true });
  prepare(section.querySelector("form"), section.querySelector(".try"), address, name);
  shown.set(key(name, version), section);
  document.getElementById("models").append(section);
}

async function draw(details, address, name) {
  const picture = details.querySelector("img");
  details.querySelector(".picture").setAttribute("aria-label", `Graph of ${name}`);
  picture.alt = `Graph of ${name}`;
  picture.src = URL.createObjectURL(await (await told(`${address}/graph.svg`)).blob());
}

function prepare(form, details, address, name) {
  const [label, request, output] = ["label", "textarea", "output"].map((tag) => form.querySelector(tag));
  request.id = `request-${shown.size}`;
  label.htmlFor = request.id;
  label.textContent = `Request to ${name}, as JSON; Ctrl+Enter sends it`;
  details.addEventListener("toggle", async () => {
    if (!request.value) request.value = JSON.stringify(await (await told(`${address}/example`)).json());
  });
  request.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    output.textContent = "…";
    try {
      const begin = performance.now();
      const answer = await ask(`${address}/infer`, { method: "POST", body: request.value });
      const result = await answer.json();
      output.classList.toggle("error", !answer.ok);
      const seconds = `${answer.status}, ${(performance.now() - begin).toFixed(1)} ms\n`;
      output.textContent = seconds + (answer.ok ? result.outputs.map(line).join("\n") : explained(result));
    } catch (error) {
      output.classList.add("error");
      output.textContent = String(error);
    }
  });
}

const line = (tensor) => `${tensor.name} ${tensor.datatype} [${tensor.shape.join(", ")}]: ${JSON.stringify(tensor.data)}`;

function explained(refusal) {
  const example = refusal.example === undefined ? "" : `\nfor example ${typeof refusal.example === "string" ? refusal.example : JSON.stringify(refusal.example)}`;
  return refusal.error + example;
}

// ---- live numbers ----

let last = { time: 0, counts: new Map() };

async function measure() {
  const text = await (await told("/metrics")).text();
  const time = performance.now();
  const counts = new Map();
  for (const [, metric, labels, value] of text.matchAll(/^(cntk_request\w*)\{(.*)\} (\S+)$/gm)) {
    const of = Object.fromEntries([...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, text]) => [name, text.replace(/\\(.)/g, "$1")]));
    const which = key(of.model, of.version);
    if (!counts.has(which)) counts.set(which, { count: 0, errors: 0, buckets: new Map() });
    const own = counts.get(which);
    if (metric === "cntk_request_seconds_bucket") own.buckets.set(of.le === "+Inf" ? Infinity : Number(of.le), Number(value));
    if (metric === "cntk_requests_total") own[of.code === "200" ? "count" : "errors"] += Number(value);
  }
  for (const [which, section] of shown) show(section, counts.get(which), last.counts.get(which), (time - last.time) / 1000);
  last = { time, counts };
}

function show(section, now, before, seconds) {
  if (!now) return;
  const set = (name, text) => { section.querySelector(`[data-live=${name}]`).textContent = text; };
  set("count", now.count.toLocaleString());
  set("errors", now.errors.toLocaleString());
  if (!before) return;
  set("rate", ((now.count - before.count) / seconds).toFixed(1));
  const buckets = [...now.buckets].sort(([a], [b]) => a - b).map(([edge, count]) => [edge, count - (before.buckets.get(edge) ?? 0)]);
  for (const [name, share] of [["p50", 0.5], ["p99", 0.99]]) {
    const total = buckets.at(-1)?.[1] ?? 0;
    const edge = buckets.find(([, count]) => count >= share * total)?.[0];
    set(name, total ? (edge === Infinity ? "more than 30 s" : `${edge * 1000} ms`) : "–");
  }
}

async function refresh() {
  try {
    await list();
    await measure();
    say(`${shown.size} served.`);
  } catch (error) {
    say(String(error.message ?? error));
  }
  setTimeout(refresh, PERIOD);
}

document.getElementById("access").addEventListener("submit", (event) => {
  event.preventDefault();
  token = document.getElementById("token").value;
  event.target.hidden = true;
});
refresh();
