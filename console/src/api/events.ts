// Server-sent events over fetch: an EventSource cannot send the page key.
import { ApiError, openStream } from "./client";
import type { Problem } from "./types";

export interface StreamEvent {
  type: string; // "message" if the stream names none.
  id: string; // The last id of the stream; empty if it has none.
  data: string;
}

export interface StreamListener {
  opened(): void;
  received(event: StreamEvent): void;
  // Called once, unless the reader closed the stream. `refusal` is the response that rejected the request; null if
  // the stream had been open, or if nothing responded.
  ended(refusal: Problem | null): void;
}

// Parses a stream in pieces of any size (HTML standard, section 9.2.6).
export class EventParser {
  private rest = "";
  private type = "";
  private id = "";
  private data: string[] = [];

  constructor(private readonly receive: (event: StreamEvent) => void) {}

  push(text: string) {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.take(line);
  }

  private take(line: string) {
    if (line === "") {
      if (this.data.length)
        this.receive({ type: this.type || "message", id: this.id, data: this.data.join("\n") });
      this.type = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.type = value;
    else if (field === "data") this.data.push(value);
    else if (field === "id" && !value.includes("\0")) this.id = value;
  }
}

// Reads the stream; the returned function closes it.
export function readEvents(target: string, listener: StreamListener): () => void {
  const abort = new AbortController();
  const read = async () => {
    const body = await openStream(target, abort.signal);
    listener.opened();
    const reader = body.getReader();
    const decoder = new TextDecoder();
    const parser = new EventParser((event) => listener.received(event));
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.push(decoder.decode(value, { stream: true }));
    }
  };
  read().then(
    () => abort.signal.aborted || listener.ended(null),
    (error: unknown) => {
      if (abort.signal.aborted) return;
      const refusal = error instanceof ApiError && error.problem.status !== 0 ? error.problem : null;
      listener.ended(refusal);
    },
  );
  return () => abort.abort();
}
