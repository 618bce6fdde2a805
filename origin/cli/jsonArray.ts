/**
 * The values of a JSON array as the text that came: a number beyond a double's reach or a key that comes twice
 * would not survive `JSON.parse`. The text is known to be a valid array (the server's answer to a read).
 */
export function arrayItems(text: string): string[] {
  const items: string[] = [];
  let depth = 0;
  let start = -1;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (inString) {
      if (c === "\\") {
        i += 1;
      } else if (c === '"') {
        inString = false;
      }
      continue;
    }
    const ends = depth === 1 && (c === "," || c === "]");
    if (ends && start >= 0) {
      const item = text.slice(start, i).trim();
      if (item !== "") {
        items.push(item);
      }
    }
    if (ends || (depth === 0 && c === "[")) {
      start = i + 1;
    }
    depth += c === "[" || c === "{" ? 1 : c === "]" || c === "}" ? -1 : 0;
    inString = c === '"';
  }
  return items;
}
