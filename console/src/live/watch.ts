// One event stream of all objects. It is resumed after the last change that arrived; if the controller has
// forgotten that change (410), the stream starts again with every object.
import { get } from "../api/client";
import { empty_status } from "../api/defaults";
import { type Kind, kinds, type Objects } from "../api/types";

export type ConnectionState = "connecting" | "live" | "lost";
export type AnyObject = Objects[Kind];

export const keyOf = (object: AnyObject) => `${object.metadata.namespace}/${object.metadata.name}`;

// The objects of each kind by key. A map is replaced and never changed, so that readers can compare it.
export type ObjectMaps = { [K in Kind]: ReadonlyMap<string, Objects[K]> };
export const noObjects = () =>
  Object.fromEntries(kinds.map((kind) => [kind, new Map()])) as unknown as ObjectMaps;

// Returns the value with the fields of `empty` that it lacks.
function filled(empty: object, value: object | undefined): object {
  const out: Record<string, unknown> = { ...value };
  for (const [key, field] of Object.entries(empty)) {
    const present = out[key];
    if (present === undefined) out[key] = field;
    else if (typeof field === "object" && !Array.isArray(field))
      out[key] = filled(field as object, present as object);
  }
  return out;
}

// Returns the object with a whole status: a new object is streamed before its status is written.
export function withStatus<T extends { kind: string; status?: object }>(object: T): T & { status: object } {
  return { ...object, status: filled(empty_status[object.kind] ?? {}, object.status) };
}

export type Change = { type: "added" | "modified" | "deleted"; object: AnyObject };

// Returns the maps after the changes, or after replacing everything if the changes are a whole list.
export function applyChanges(maps: ObjectMaps, changes: Change[], isWholeList: boolean): ObjectMaps {
  const out: Record<string, Map<string, AnyObject>> = {};
  const base = isWholeList ? noObjects() : maps;
  for (const { type, object } of changes) {
    const kind = object.kind as Kind;
    if (!kinds.includes(kind)) continue;
    const map = out[kind] ?? new Map(base[kind] as ReadonlyMap<string, AnyObject>);
    out[kind] = map;
    if (type === "deleted") map.delete(keyOf(object));
    else map.set(keyOf(object), object);
  }
  return { ...base, ...(out as unknown as Partial<ObjectMaps>) };
}

const retry_ms = 1000;
const flush_ms = 50; // Changes within this time are applied together.

export interface WatchListener {
  changed(update: (maps: ObjectMaps) => ObjectMaps): void;
  state(state: ConnectionState): void;
}

// Starts the stream; the returned function ends it.
export function startWatch(listener: WatchListener): () => void {
  let version = "";
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let flushTimer: ReturnType<typeof setTimeout> | undefined;
  let pending: Change[] = [];
  let readsList = true;
  let ended = false;

  const flush = (isWholeList: boolean) => {
    clearTimeout(flushTimer);
    flushTimer = undefined;
    const changes = pending;
    pending = [];
    if (changes.length || isWholeList) listener.changed((maps) => applyChanges(maps, changes, isWholeList));
  };

  const receive = (type: Change["type"]) => (event: MessageEvent<string>) => {
    if (event.lastEventId) version = event.lastEventId;
    pending.push({ type, object: withStatus(JSON.parse(event.data) as AnyObject) as AnyObject });
    if (!readsList && flushTimer === undefined) flushTimer = setTimeout(() => flush(false), flush_ms);
  };

  const reconnect = async () => {
    source?.close();
    source = null;
    if (ended) return;
    listener.state("lost");
    // If the controller responds although the stream was refused, the version is no longer known.
    const responds = await get("/v1/version").then(
      () => true,
      () => false,
    );
    if (responds) version = "";
    timer = setTimeout(open, responds ? 0 : retry_ms);
  };

  const open = () => {
    if (ended) return;
    pending = [];
    readsList = version === "";
    source = new EventSource(version ? `/v1/watch?resourceVersion=${version}` : "/v1/watch");
    source.onopen = () => listener.state("live");
    source.addEventListener("added", receive("added"));
    source.addEventListener("modified", receive("modified"));
    source.addEventListener("deleted", receive("deleted"));
    source.addEventListener("bookmark", (event) => {
      if (event.lastEventId) version = event.lastEventId;
      if (readsList) flush(true);
      readsList = false;
    });
    source.onerror = () => {
      flush(false);
      // A stream that was open is resumed; one that was refused may be too old.
      if (source?.readyState === EventSource.CLOSED || readsList) void reconnect();
      else {
        source?.close();
        listener.state("lost");
        timer = setTimeout(open, retry_ms);
      }
    };
  };

  open();
  return () => {
    ended = true;
    clearTimeout(timer);
    clearTimeout(flushTimer);
    source?.close();
  };
}
