// A chart over time on uPlot's canvas. Threshold series are drawn dashed.
import { useEffect, useMemo, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useT } from "../i18n";
import { cssColor, useIsDark } from "./theme";

export interface Series {
  label: string;
  colour: string; // A CSS variable.
  isThreshold?: boolean;
}
interface Props {
  label: string;
  series: Series[];
  // The times in seconds, then the values of each series.
  data: (number | null)[][];
  format: (value: number) => string;
  max?: number;
  steps?: number[]; // Distances of the marks of the vertical axis, ascending; decimal without it.
}

const height = 200;
const min_span_seconds = 60;

export default function Chart({ label, series, data, format, max, steps }: Props) {
  const t = useT();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const isDark = useIsDark();
  const shape = useMemo(() => JSON.stringify(series), [series]);
  const latest = useRef({ data, format });
  latest.current = { data, format };

  // biome-ignore lint/correctness/useExhaustiveDependencies: the plot is made again if the series or the colours change
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const axis = {
      stroke: cssColor("--muted"),
      grid: { stroke: cssColor("--line"), width: 1 },
      ticks: { show: false },
      font: "11px system-ui, sans-serif",
    };
    const made = new uPlot(
      {
        width: Math.max(element.clientWidth, 100),
        height,
        cursor: { y: false },
        legend: { live: true },
        scales: {
          x: { range: (_, first, last) => [first, Math.max(last, first + min_span_seconds)] },
          y: { range: (_, __, top) => [0, max ?? Math.max(top * 1.1, 1)] },
        },
        axes: [
          {
            ...axis,
            size: 28,
            values: (_, times) => times.map((v) => new Date(v * 1000).toTimeString().slice(0, 8)),
          },
          {
            ...axis,
            size: 76,
            ...(steps ? { incrs: steps } : {}),
            values: (_, values) => values.map((v) => latest.current.format(v)),
          },
        ],
        series: [
          { label: t("Time"), value: (_, v) => (v === null ? "-" : new Date(v * 1000).toLocaleTimeString()) },
          ...series.map((s) => ({
            label: s.label,
            stroke: cssColor(s.colour),
            width: 1.5,
            points: { show: false },
            ...(s.isThreshold ? { dash: [4, 4] } : {}),
            value: (_: uPlot, v: number | null) => (v === null ? "-" : latest.current.format(v)),
          })),
        ],
      },
      latest.current.data as uPlot.AlignedData,
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(([entry]) =>
      made.setSize({ width: Math.max(entry!.contentRect.width, 100), height }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, isDark, max]);

  useEffect(() => plot.current?.setData(data as uPlot.AlignedData), [data]);
  return <div ref={box} className="chart" role="img" aria-label={label} />;
}
