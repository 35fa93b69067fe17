// The texts that browser code says, as the page brought them.

const texts = JSON.parse(document.getElementById("words").textContent);

export const language = document.documentElement.lang;

export function t(key, values = {}) {
  const [one, many] = texts[key].split("|");
  const text = many === undefined || values.n === 1 ? one : many;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}
