import { describe, expect, it } from "vitest";
import { joined, pointsOf, seriesOf } from "./history";

const history = {
  object: "slice/n1/a",
  from: "2026-11-01T00:00:00Z",
  to: "2026-11-01T00:00:20Z",
  step_seconds: 5,
  series: [
    { metric: "charged_bytes", device: 0, uuid: "GPU-0", values: [null, 1, null, 3] },
    { metric: "charged_bytes", device: 1, uuid: "GPU-1", values: [null, 10, null, null] },
    { metric: "achieved_bp", device: 0, uuid: "GPU-0", values: [null, null, 7, 0] },
  ],
};
const begin = Date.parse(history.from) / 1000;

describe("history", () => {
  it("adds up the devices of a slice, keeps gaps, and begins with the first value", () => {
    const points = pointsOf(history);
    expect(points.map((p) => p.time - begin)).toEqual([5, 10, 15]);
    expect(seriesOf(points, "charged_bytes")).toEqual([11, null, 3]);
    expect(seriesOf(points, "achieved_bp")).toEqual([null, 7, 0]);
    expect(seriesOf(points, "other")).toEqual([null, null, null]);
    expect(pointsOf({ ...history, series: [] })).toEqual([]);
  });

  it("continues with the page's own samples", () => {
    const points = pointsOf(history);
    const samples = [
      { time: begin + 12, values: { charged_bytes: 5 } },
      { time: begin + 14, values: { charged_bytes: 6 } },
    ];
    expect(seriesOf(joined(points, samples, 10), "charged_bytes")).toEqual([11, null, 5, 6]);
    expect(joined(points, [], 10)).toBe(points);
    const late = [{ time: begin + 100, values: { charged_bytes: 9 } }];
    expect(seriesOf(joined(points, late, 10), "charged_bytes")).toEqual([11, null, 3, null, 9]);
  });
});
