// The page key of the session: each request sends it next to the cookie (docs/decisions/0031-console-sessions.md).
// It belongs to this origin, port included: sessionStorage keeps it for the tab, and a BroadcastChannel gives
// it to other tabs that ask.
const storage_key = "carve-page-key";
const answer_ms = 300; // How long a new tab waits for the others.

type Message = { type: "wanted" } | { type: "key"; key: string };

const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("carve-page-key");
channel?.addEventListener("message", ({ data }: MessageEvent<Message>) => {
  const key = pageKey();
  if (data.type === "wanted" && key) channel.postMessage({ type: "key", key } satisfies Message);
});

// Returns the key of this tab; empty if it has none.
export const pageKey = () =>
  typeof sessionStorage === "undefined" ? "" : (sessionStorage.getItem(storage_key) ?? "");

export function keepPageKey(key: string) {
  if (key) sessionStorage.setItem(storage_key, key);
  else sessionStorage.removeItem(storage_key);
}

// Asks the other tabs for the key if this tab has none.
export function findPageKey(): Promise<void> {
  if (pageKey() || !channel) return Promise.resolve();
  return new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      channel.removeEventListener("message", receive);
      done();
    };
    const receive = ({ data }: MessageEvent<Message>) => {
      if (data.type !== "key") return;
      keepPageKey(data.key);
      end();
    };
    const timer = setTimeout(end, answer_ms);
    channel.addEventListener("message", receive);
    channel.postMessage({ type: "wanted" } satisfies Message);
  });
}
