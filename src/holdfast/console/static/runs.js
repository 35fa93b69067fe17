// The runs page: filters that apply at once, a selection that outlives a refresh, and what can
// be done with all that is selected.

import { Refusal, post } from "./api.js";
import { refresh } from "./live.js";
import { notify, press } from "./shell.js";
import { nt, t } from "./words.js";

const HOMES = { plan: "instances", chat: "chats", conversation: "conversations" };

const find = (id) => document.getElementById(id);
const picks = () => [...document.querySelectorAll("#runs tbody input[type=checkbox]")];
const selected = new Set();

function show() {
  const all = picks();
  const chosen = all.filter((pick) => pick.checked);
  const can = (action) => chosen.filter((pick) => pick.dataset.actions.split(" ").includes(action));
  find("bulk").hidden = !chosen.length;
  const text = chosen.length ? nt("{n} run selected", "{n} runs selected", { n: chosen.length }) : "";
  if (find("selected").textContent !== text) find("selected").textContent = text;
  offer("resume", can("resume"));
  offer("cancel", can("cancel"));
  const whole = find("select-all");
  if (!whole) return [];
  whole.checked = chosen.length > 0 && chosen.length === all.length;
  whole.indeterminate = chosen.length > 0 && !whole.checked;
  return can;
}

/** The dialog names the runs that it is about. */
function offer(action, runs) {
  find(action).disabled = !runs.length;
  find(`${action}-now`).textContent = action === "resume"
    ? nt("Resume {n} run", "Resume {n} runs", { n: runs.length })
    : nt("Cancel {n} run", "Cancel {n} runs", { n: runs.length });
  const lines = runs.map(({ value, dataset }) => {
    const line = document.createElement("li");
    line.textContent = t("{title}: {run}", { title: dataset.title, run: value });
    return line;
  });
  document.querySelector(`[data-named=${action}]`).replaceChildren(...lines);
}

function choose(pick, chosen) {
  pick.checked = chosen;
  if (chosen) selected.add(pick.value);
  else selected.delete(pick.value);
}

document.addEventListener("change", ({ target }) => {
  if (target.id === "select-all") picks().forEach((pick) => choose(pick, target.checked));
  else if (target.closest("#runs tbody")) choose(target, target.checked);
  else if (target.closest("#filters")) return find("filters").requestSubmit();
  show();
});

document.addEventListener("part:swapped", ({ target }) => {
  if (target.id !== "runs") return;
  for (const pick of picks()) pick.checked = selected.has(pick.value);
  show();
});

find("filters").addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) if (!value) formData.delete(name);
});
find("apply").hidden = true;
find("clear").addEventListener("click", () => {
  picks().forEach((pick) => choose(pick, false));
  show();
  find("select-all")?.focus();
});

/** One request after another, each under its own name: what is refused stays selected. */
async function all(action, body) {
  const runs = show()(action);
  let n = 0;
  for (const pick of runs) {
    try {
      const { kind, moved } = pick.dataset;
      await post(`/${HOMES[kind]}/${pick.value}/${action}`, body, { known: { ...body, moved } });
      choose(pick, false);
      n += 1;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      notify(t("{run}: {why}", { run: pick.value, why: error.message }), "failed");
    }
  }
  show();
  refresh("runs", { now: true });
  return n;
}

find("resume-now").addEventListener("click", ({ currentTarget }) =>
  press(currentTarget, async () => {
    find("resuming").close();
    const n = await all("resume", {});
    if (n) notify(nt("{n} run goes on", "{n} runs go on", { n }));
  }));

find("cancel-now").addEventListener("click", ({ currentTarget }) =>
  press(currentTarget, async () => {
    const reason = find("cancel-reason").value.trim();
    find("cancelling").close();
    const n = await all("cancel", reason ? { reason } : {});
    find("cancel-reason").value = "";
    if (n) notify(nt("{n} run is being cancelled", "{n} runs are being cancelled", { n }));
  }));

show();
