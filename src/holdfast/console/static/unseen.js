// Characters that do not show, and what stands for them.

const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Cn}]/gu;
const PLAIN = "\n\u200c\u200d";

/** Text with nothing hidden in it, as the server's `seen` has it. */
export function seen(text) {
  return text.replaceAll("\t", "    ").replace(HIDDEN, (one) => {
    const code = one.codePointAt(0);
    const unassigned = /\p{Cn}/u.test(one) && (code & 0xfffe) !== 0xfffe;
    if (unassigned || PLAIN.includes(one)) return one;
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "␡" : `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}
