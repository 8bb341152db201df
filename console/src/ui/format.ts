// Formats amounts exactly as `carve` prints them (base/bytes.cc, base/share.cc, cli/terminal.cc, cli/amounts.cc).

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

// "4 GiB", "1.5 GiB", "22731 MiB", "100 B": the largest unit in which the amount is exact with at most one
// decimal, otherwise MiB with one decimal.
export function bytes(count: number): string {
  for (let power = 4; power >= 0; power--) {
    const unit = 2 ** (10 * power);
    if (count < unit && power > 0) continue;
    const whole = Math.floor(count / unit);
    const rest = count % unit;
    if (rest === 0) return `${whole} ${units[power]}`;
    if ((rest * 10) % unit === 0) return `${whole}.${(rest * 10) / unit} ${units[power]}`;
    if (power === 2) return `${tenths(count, unit)} MiB`;
  }
  return `${count} B`;
}

// C's "%.1f" of count / unit rounds the exact quotient half to even; the quotient by a power of two is exact.
function tenths(count: number, unit: number): string {
  const scaled = (count * 10) / unit;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  const rounded = rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
  return `${Math.floor(rounded / 10)}.${rounded % 10}`;
}

// "30%", "12.5%", "0.01%".
export function share(basisPoints: number): string {
  const whole = Math.floor(basisPoints / 100);
  const rest = basisPoints % 100;
  if (rest === 0) return `${whole}%`;
  return rest % 10 === 0 ? `${whole}.${rest / 10}%` : `${whole}.${String(rest).padStart(2, "0")}%`;
}

// "29.9%": tenths, for measured values.
export function percent(basisPoints: number): string {
  return `${Math.floor((basisPoints + 5) / 100)}.${Math.floor((basisPoints + 5) / 10) % 10}%`;
}

const two = (n: number) => String(n).padStart(2, "0");

// "26s", "1m42s", "2h05m", "3d04h".
export function age(ns: number): string {
  const s = Math.floor(Math.max(ns, 0) / 1e9);
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${two(s % 60)}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h${two(Math.floor(s / 60) % 60)}m`;
  return `${Math.floor(s / 86400)}d${two(Math.floor(s / 3600) % 24)}h`;
}

// "0", "23us", "24.0ms", "7.07s", "1m42s".
export function span(ns: number): string {
  if (ns === 0) return "0";
  if (ns < 1e6) return `${Math.max(Math.floor(ns / 1000), 1)}us`;
  if (ns < 1e9) return `${(ns / 1e6).toFixed(1)}ms`;
  if (ns < 6e10) return `${(ns / 1e9).toFixed(2)}s`;
  return age(ns);
}

// Rounds "3.603889" half to even to two decimals, or to four if it is below 1: "3.60", "0.0033", "0.00".
export function amount(text: string): string {
  const point = text.indexOf(".");
  if (point < 0 || text.length - point !== 7) return text;
  const isZero = !/[^0.]/.test(text);
  const decimals = text.slice(0, point) === "0" && !isZero ? 4 : 2;
  let digits = BigInt(text.slice(0, point) + text.slice(point + 1, point + 1 + decimals));
  const rest = text.slice(point + 1 + decimals);
  const half = `5${"0".repeat(rest.length - 1)}`;
  if (rest > half || (rest === half && digits % 2n === 1n)) digits += 1n;
  const out = digits.toString().padStart(decimals + 1, "0");
  return `${out.slice(0, -decimals)}.${out.slice(-decimals)}`;
}

// "2026-11-28 15:11:06" in local time, of nanoseconds or of a time of the API.
export function clock(time: number | string): string {
  const date = new Date(typeof time === "number" ? time / 1e6 : time);
  if (Number.isNaN(date.getTime()) || time === 0) return "-";
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export const sinceText = (time: string) => (time ? age((Date.now() - Date.parse(time)) * 1e6) : "-");
export const sinceNs = (ns: number) => age(Date.now() * 1e6 - ns);

// Parses "4GiB", "1.5GiB", "4096MiB", "4GB"; returns null if the text is not an amount.
export function parseBytes(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)$/.exec(text.trim());
  if (!match) return null;
  const binary = units.indexOf(match[2]!);
  const factor = binary >= 0 ? 2 ** (10 * binary) : 1000 ** ["B", "kB", "MB", "GB", "TB"].indexOf(match[2]!);
  const value = Number(match[1]) * factor;
  return Number.isInteger(value) ? value : null;
}

// Parses "30%" or "30" to basis points; returns null if it is not above 0 and at most 100 %.
export function parseShare(text: string): number | null {
  const match = /^(\d+(?:\.\d{1,2})?)\s*%?$/.exec(text.trim());
  if (!match) return null;
  const bp = Math.round(Number(match[1]) * 100);
  return bp > 0 && bp <= 10000 ? bp : null;
}
