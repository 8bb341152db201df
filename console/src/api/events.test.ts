import { expect, it } from "vitest";
import { EventParser, type StreamEvent } from "./events";

const stream =
  'id: 7\nevent: added\ndata: {"a":1}\n\n: comment\ndata: first\ndata:second\r\n\r\nevent: end\n\ndata\n\n';
const events: StreamEvent[] = [
  { type: "added", id: "7", data: '{"a":1}' },
  { type: "message", id: "7", data: "first\nsecond" },
  { type: "message", id: "7", data: "" },
];

it("parses a stream that arrives in pieces of any size", () => {
  for (let size = 1; size <= stream.length; ++size) {
    const seen: StreamEvent[] = [];
    const parser = new EventParser((event) => seen.push(event));
    for (let at = 0; at < stream.length; at += size) parser.push(stream.slice(at, at + size));
    expect(seen, `pieces of ${size}`).toEqual(events);
  }
});

it("dispatches no event before its blank line", () => {
  const seen: StreamEvent[] = [];
  const parser = new EventParser((event) => seen.push(event));
  parser.push("data: unfinished\n");
  expect(seen).toEqual([]);
});
