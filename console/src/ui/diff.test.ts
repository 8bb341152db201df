import { expect, it } from "vitest";
import { diffLines } from "./diff";

const text = (before: string, after: string) =>
  diffLines(before, after)
    .map((l) => ({ same: " ", added: "+", removed: "-" })[l.kind] + l.text)
    .join("|");

it("finds the shortest edit", () => {
  expect(text("a\nb\nc", "a\nc\nd")).toBe(" a|-b| c|+d");
  expect(text("a", "a")).toBe(" a");
  expect(text("x", "y")).toBe("-x|+y");
});
