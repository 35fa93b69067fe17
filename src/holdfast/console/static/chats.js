// The list of chats: a press starts one with an agent and goes there.

import { post } from "./api.js";
import { at } from "./place.js";
import { press } from "./shell.js";

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-agent]");
  if (!button) return;
  press(button, async () => {
    const { sessionId } = await post("/chats", { agentId: button.dataset.agent });
    location.assign(at(`/console/chat/${encodeURIComponent(sessionId)}`));
  });
});
