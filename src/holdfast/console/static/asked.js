// Which fields of a form are asked is for the server to say, by what is filled in so far.

import { newKey, post } from "./api.js";
import { dress, rows, values } from "./form.js";

const settling = new Map();

/** Asks once more; what is sent waits for the answer (`settled`). */
export function settle(form, path) {
  if (form.dataset.conditional === undefined) return;
  const given = { values: values(form, { everything: true }) };
  const again = () => settle(form, path);
  const asking = post(path, given, { key: newKey() }).then(({ asked }) => {
    if (settling.get(form)?.asking !== asking) return;
    for (const row of rows(form)) row.hidden = !asked.includes(row.dataset.name);
    dress(form);
  });
  settling.set(form, { asking, again });
  asking.catch(() => {}); // sending the form tells it
}

/** Done once the server has said it; an answer that was lost is asked for once more. */
export async function settled(form) {
  await settling.get(form)?.asking.catch(() => {
    settling.get(form).again();
    return settling.get(form).asking;
  });
}

document.addEventListener("live:state", ({ detail }) => {
  for (const form of settling.keys()) {
    if (!form.isConnected) settling.delete(form);
    else if (detail === "live") settled(form).catch(() => {}); // as above
  }
});
