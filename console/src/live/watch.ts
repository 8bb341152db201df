// One event stream of all objects. It is resumed after the last change that arrived; if the controller has
// forgotten that change (410), the stream starts again with every object.
import { empty_status } from "../api/defaults";
import { readEvents, type StreamEvent } from "../api/events";
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
  let close = () => {};
  let timer: ReturnType<typeof setTimeout> | undefined;
  let flushTimer: ReturnType<typeof setTimeout> | undefined;
  let pending: Change[] = [];
  let readsList = true;

  const flush = (isWholeList: boolean) => {
    clearTimeout(flushTimer);
    flushTimer = undefined;
    const changes = pending;
    pending = [];
    if (changes.length || isWholeList) listener.changed((maps) => applyChanges(maps, changes, isWholeList));
  };

  const receive = ({ type, id, data }: StreamEvent) => {
    if (id) version = id;
    if (type === "bookmark") {
      if (readsList) flush(true);
      readsList = false;
    } else if (type === "added" || type === "modified" || type === "deleted") {
      pending.push({ type, object: withStatus(JSON.parse(data) as AnyObject) as AnyObject });
      if (!readsList && flushTimer === undefined) flushTimer = setTimeout(() => flush(false), flush_ms);
    }
  };

  const open = () => {
    pending = [];
    readsList = version === "";
    close = readEvents(version ? `/v1/watch?resourceVersion=${version}` : "/v1/watch", {
      opened: () => listener.state("live"),
      received: receive,
      ended: (refusal) => {
        // The changes that have arrived count, but not a part of the list of all objects.
        if (readsList) pending = [];
        flush(false);
        listener.state("lost");
        // A refused version is no longer known: the stream starts again with every object.
        if (refusal || readsList) version = "";
        timer = setTimeout(open, retry_ms);
      },
    });
  };

  open();
  return () => {
    clearTimeout(timer);
    clearTimeout(flushTimer);
    close();
  };
}
