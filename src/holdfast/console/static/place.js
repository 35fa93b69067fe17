// Where this console lives: its modules are served below it, whatever it is mounted under.

const root = new URL("../../..", import.meta.url).pathname.slice(0, -1);

/** An address of the server's, as this browser reaches it. */
export const at = (path) => root + path;
