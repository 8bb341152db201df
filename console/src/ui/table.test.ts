import { expect, it } from "vitest";
import { type Column, filtered, sorted } from "./table";

interface Row {
  name: string;
  size: number;
}
const columns: Column<Row>[] = [
  { key: "name", header: "Name", cell: (r) => r.name, sortBy: (r) => r.name, text: (r) => r.name },
  { key: "size", header: "Size", cell: (r) => r.size, sortBy: (r) => r.size },
];
const rows = [
  { name: "a10", size: 5 },
  { name: "a2", size: 40 },
  { name: "b", size: 5 },
];

it("sorts names with numbers by number, and keeps the order of equal rows", () => {
  expect(sorted(rows, columns[0], false).map((r) => r.name)).toEqual(["a2", "a10", "b"]);
  expect(sorted(rows, columns[1], false).map((r) => r.name)).toEqual(["a10", "b", "a2"]);
  expect(sorted(rows, columns[1], true).map((r) => r.name)).toEqual(["a2", "a10", "b"]);
});
it("shows rows that contain every word of the filter", () => {
  expect(filtered(rows, columns, "A 2").map((r) => r.name)).toEqual(["a2"]);
  expect(filtered(rows, columns, "40")).toEqual([]);
});
