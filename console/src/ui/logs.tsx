// Output of programs, which follows the stream of the API until the object is gone or its job has ended.
import { useEffect, useMemo, useRef, useState } from "react";
import { ApiError, withQuery } from "../api/client";
import { readEvents } from "../api/events";
import { useT } from "../i18n";
import { ErrorPanel, Status } from "./basics";
import { Checkbox, type Option, SelectField } from "./fields";

const max_lines = 5000;
const retry_ms = 2000;

interface Props {
  target: string; // The route of the logs.
  pods: Option[]; // Values are query strings such as "replica=0".
}

export function LogView({ target, pods }: Props) {
  const t = useT();
  const [pod, setPod] = useState("");
  const [isPrevious, setPrevious] = useState(false);
  const [filter, setFilter] = useState("");
  const [lines, setLines] = useState<string[]>([]);
  const [state, setState] = useState<"connecting" | "following" | "ended" | "lost">("connecting");
  const [attempt, setAttempt] = useState(0);
  const [error, setError] = useState<unknown>(null);
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new attempt opens the stream again
  useEffect(() => {
    setLines([]);
    setState("connecting");
    setError(null);
    let hasEnded = false;
    let retryTimer: ReturnType<typeof setTimeout> | undefined;
    let pending: string[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      timer = undefined;
      const added = pending;
      pending = [];
      setLines((old) => [...old, ...added].slice(-max_lines));
    };
    const query = Object.fromEntries(new URLSearchParams(pod));
    const close = readEvents(
      withQuery(target, { ...query, follow: !isPrevious, previous: isPrevious, tail: 500, plain: true }),
      {
        opened: () => setState("following"),
        received: ({ type, data }) => {
          if (type === "end") {
            hasEnded = true;
            setState("ended");
          } else {
            pending.push(data);
            timer ??= setTimeout(flush, 100);
          }
        },
        ended: (refusal) => {
          if (hasEnded) return;
          setState("lost");
          if (refusal) setError(new ApiError(refusal));
          else retryTimer = setTimeout(() => setAttempt((n) => n + 1), retry_ms);
        },
      },
    );
    return () => {
      clearTimeout(timer);
      clearTimeout(retryTimer);
      close();
    };
  }, [target, pod, isPrevious, attempt]);

  const shown = useMemo(
    () => (filter ? lines.filter((line) => line.toLowerCase().includes(filter.toLowerCase())) : lines),
    [lines, filter],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines move the view
  useEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [shown]);

  return (
    <div>
      <div className="table-bar">
        <SelectField
          label={t("Program")}
          value={pod}
          onChange={setPod}
          options={[{ value: "", label: t("All programs") }, ...pods]}
        />
        <label className="hidden-label" htmlFor="log-filter">
          {t("Filter lines")}
        </label>
        <input
          id="log-filter"
          type="search"
          placeholder={t("Filter lines")}
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
        <Checkbox label={t("Previous attempt")} value={isPrevious} onChange={setPrevious} />
        <Status state={state} tone={state === "following" ? "ok" : state === "lost" ? "warn" : "idle"}>
          {state === "following"
            ? t("follows")
            : state === "ended"
              ? t("ended")
              : state === "lost"
                ? t("the stream has ended")
                : t("Loading…")}
        </Status>
      </div>
      <ErrorPanel error={error} />
      <pre
        ref={box}
        className="log"
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={t("Output")}
        onScroll={(event) => {
          const e = event.currentTarget;
          isAtEnd.current = e.scrollHeight - e.scrollTop - e.clientHeight < 40;
        }}
      >
        {shown.length > 0 ? shown.join("\n") : t("No output yet.")}
      </pre>
    </div>
  );
}
