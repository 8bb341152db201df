import { expect, it } from "vitest";
import { age, amount, bytes, parseBytes, parseShare, percent, share, span } from "./format";

// The values are those of the unit tests of base/bytes.cc, base/share.cc and cli/, and of `carve ps`.
it("formats bytes as the command line does", () => {
  const rows: [number, string][] = [
    [0, "0 B"],
    [100, "100 B"],
    [1024, "1 KiB"],
    [1536, "1.5 KiB"],
    [1025, "1025 B"],
    [2 ** 20, "1 MiB"],
    [2 ** 30, "1 GiB"],
    [5368709120, "5 GiB"],
    [1.5 * 2 ** 30, "1.5 GiB"],
    [22731 * 2 ** 20, "22731 MiB"],
    [23835181056, "22731 MiB"],
    [2 ** 40, "1 TiB"],
    [20_000_000_000, "19073.5 MiB"],
    [4 * 10 ** 9, "3814.7 MiB"],
    [2415919104, "2304 MiB"],
    [3 * 2 ** 20 + 1, "3.0 MiB"],
    [1.25 * 2 ** 20, "1.2 MiB"],
    [1.75 * 2 ** 20, "1.8 MiB"],
  ];
  for (const [count, text] of rows) expect(bytes(count), String(count)).toBe(text);
});
it("formats shares exactly", () => {
  expect([3000, 1250, 1, 10000, 1205, 0].map(share)).toEqual([
    "30%",
    "12.5%",
    "0.01%",
    "100%",
    "12.05%",
    "0%",
  ]);
});
it("formats measured percents with tenths", () => {
  expect([2994, 2995, 10000, 4].map(percent)).toEqual(["29.9%", "30.0%", "100.0%", "0.0%"]);
});
it("formats times", () => {
  expect([26, 102, 7500, 273600].map((s) => age(s * 1e9))).toEqual(["26s", "1m42s", "2h05m", "3d04h"]);
  expect([0, 500, 23954072, 7067489085, 61e9].map(span)).toEqual(["0", "1us", "24.0ms", "7.07s", "1m01s"]);
});
it("rounds amounts half to even", () => {
  const rows: [string, string][] = [
    ["3.603889", "3.60"],
    ["0.003333", "0.0033"],
    ["0.000000", "0.00"],
    ["0.000050", "0.0000"],
    ["0.000150", "0.0002"],
    ["2.675000", "2.68"],
    ["2.665000", "2.66"],
    ["9.995000", "10.00"],
    ["0.999950", "1.0000"],
    ["12", "12"],
    ["1.5", "1.5"],
  ];
  for (const [text, shown] of rows) expect(amount(text), text).toBe(shown);
});
it("parses what users write", () => {
  expect([
    parseBytes("4GiB"),
    parseBytes("1.5 GiB"),
    parseBytes("4GB"),
    parseBytes("4096"),
    parseBytes("x"),
  ]).toEqual([2 ** 32, 1.5 * 2 ** 30, 4e9, null, null]);
  expect([
    parseShare("30%"),
    parseShare("12.5"),
    parseShare("0"),
    parseShare("101"),
    parseShare("1.234"),
  ]).toEqual([3000, 1250, null, null, null]);
});
