// What a control's text stands for, as JSON has it: numbers and moments.

// A number that the browser cannot hold exactly goes as text: the server then refuses it, and
// nothing else is sent in its place.
export function number(text) {
  const value = Number(text);
  const exact = /^[+-]?\d+$/.test(text) ? Number.isSafeInteger(value) : Number.isFinite(value);
  return text && exact ? value : text || null;
}

export function moment(input) {
  if (!input.value) return null;
  return input.value === input.defaultValue && input.dataset.moment || new Date(input.value).toISOString();
}

export function local(iso) {
  const at = new Date(iso);
  if (Number.isNaN(at.valueOf())) return "";
  return new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
}
