// A difference of two texts by lines.
export interface DiffLine {
  kind: "same" | "added" | "removed";
  text: string;
}

// Returns the shortest edit (longest common subsequence) from the lines of `before` to those of `after`.
export function diffLines(before: string, after: string): DiffLine[] {
  const a = before.split("\n");
  const b = after.split("\n");
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width); // Length of the common rest from (i, j).
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const out: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push({ kind: "same", text: a[i++]! });
      j++;
    } else if (j >= b.length || (i < a.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!))
      out.push({ kind: "removed", text: a[i++]! });
    else out.push({ kind: "added", text: b[j++]! });
  }
  return out;
}

export function Diff({ before, after, label }: { before: string; after: string; label: string }) {
  return (
    <pre className="diff" role="group" aria-label={label} tabIndex={0}>
      {diffLines(before, after).map((line, i) =>
        line.kind === "added" ? (
          <ins key={i}>{line.text}</ins>
        ) : line.kind === "removed" ? (
          <del key={i}>{line.text}</del>
        ) : (
          <span key={i}>{line.text}</span>
        ),
      )}
    </pre>
  );
}
