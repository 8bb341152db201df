// A number field's text for a document: a number if the text is one, otherwise the text itself, which the
// controller rejects with a message for the field.
export function numberOrText(text: string): number | string {
  const trimmed = text.trim();
  return /^-?\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : trimmed;
}

export const textOf = (value: unknown): string =>
  value === undefined || value === null ? "" : String(value);

// "A=1\nB=2" as a map, and back. A line without "=" is a variable without a value.
export function readPairs(text: string): Record<string, string> {
  const out: Record<string, string> = {};
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const equals = line.indexOf("=");
    if (equals < 0) out[line.trim()] = "";
    else out[line.slice(0, equals).trim()] = line.slice(equals + 1);
  }
  return out;
}
export const pairsText = (pairs: Record<string, string>) =>
  Object.entries(pairs)
    .map(([key, value]) => `${key}=${value}`)
    .join("\n");

// Splits a command line as a shell does, without expansions: quotes and backslashes.
export function splitCommand(text: string): string[] {
  const out: string[] = [];
  let word = "";
  let isWord = false;
  let quote = "";
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (quote) {
      if (c === quote) quote = "";
      else if (c === "\\" && quote === '"' && i + 1 < text.length && '"\\$`'.includes(text[i + 1]!))
        word += text[++i];
      else word += c;
    } else if (c === "'" || c === '"') {
      quote = c;
      isWord = true;
    } else if (c === "\\" && i + 1 < text.length) {
      word += text[++i];
      isWord = true;
    } else if (/\s/.test(c)) {
      if (isWord) out.push(word);
      word = "";
      isWord = false;
    } else {
      word += c;
      isWord = true;
    }
  }
  if (isWord) out.push(word);
  return out;
}

// The inverse of splitCommand().
export const joinCommand = (words: string[]) =>
  words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(" ");
