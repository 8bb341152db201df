// Checks the budget of the first view: the gzipped JavaScript that index.html loads, with everything that it
// imports statically. Lazy pages are printed and not counted. Exits with 1 if the budget is exceeded.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const max_first_view_bytes = 250 * 1024;
const folder = new URL("../dist/", import.meta.url);
const read = (path) => readFileSync(new URL(path.replace(/^\//, ""), folder));
const size = (path) => gzipSync(read(path), { level: 9 }).length;

const first = new Set();
function add(path) {
  if (first.has(path)) return;
  first.add(path);
  for (const [, imported] of read(path)
    .toString()
    .matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g))
    add(`assets/${imported}`);
}
for (const [, path] of read("index.html")
  .toString()
  .matchAll(/(?:src|href)="\/([^"]+\.js)"/g))
  add(path);

const bytes = [...first].reduce((sum, path) => sum + size(path), 0);
const lazy = readdirSync(new URL("assets/", folder)).filter(
  (name) => name.endsWith(".js") && !first.has(`assets/${name}`),
);
for (const name of lazy) console.log(`  lazy ${name}: ${(size(`assets/${name}`) / 1024).toFixed(1)} KiB`);
console.log(
  `first view: ${(bytes / 1024).toFixed(1)} KiB of gzipped JavaScript, at most ${max_first_view_bytes / 1024}`,
);
process.exit(bytes > max_first_view_bytes ? 1 : 0);
