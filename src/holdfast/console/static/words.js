// The texts that browser code says, as the page brought them.

const texts = JSON.parse(document.getElementById("words").textContent);

export const language = document.documentElement.lang;

/** The text in the reader's language, which the page has brought unless it is English. */
export function t(text, values = {}) {
  return (texts[text] ?? text).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

export function nt(one, many, values) {
  return t(one in texts || values.n === 1 ? one : many, values);
}
