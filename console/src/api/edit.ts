// Changes of objects that notice the changes of other users. The version in If-Match also rises with an
// object's status, so after a refusal the object is read again: if no user has changed it, the change is
// repeated with the new version, otherwise it is a Conflict.
import { ApiError, call } from "./client";

// The part of an object that users change.
export interface Editable {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> };
  spec: unknown;
}

export class Conflict<T> extends Error {
  constructor(readonly current: T) {
    super("the object has changed since you opened it");
  }
}

export const editableText = (object: Editable) =>
  JSON.stringify(
    {
      metadata: { labels: object.metadata.labels, annotations: object.metadata.annotations },
      spec: object.spec,
    },
    null,
    2,
  );

const max_attempts = 5;

// Sends a change of the object as it was when the user began to edit it (`loaded`). A POST changes the object at
// another path.
export async function saveObject<T extends Editable>(
  method: "PUT" | "PATCH" | "POST",
  target: string,
  loaded: T,
  body: unknown,
  query: Record<string, string | boolean> = {},
  changedAt = target,
): Promise<{ value: T; warnings: string[] }> {
  for (let attempt = 0; ; attempt++) {
    const current = await call<T>("GET", target);
    if (editableText(current.value) !== editableText(loaded)) throw new Conflict(current.value);
    try {
      return await call<T>(method, changedAt, { body, ifMatch: current.etag, query });
    } catch (error) {
      if (!(error instanceof ApiError && error.problem.status === 412) || attempt >= max_attempts)
        throw error;
    }
  }
}
