// The map of the fleet on a canvas: each device with its slices, stacked by memory, their compute and the
// places that are taken. The table of the same devices is its equivalent for keyboard and screen reader.
import { type MouseEvent, useEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { useT } from "../i18n";
import type { NodeSlice } from "../live/objects";
import { bytes, percent, share } from "../ui/format";
import { cssColor, useIsDark } from "../ui/theme";
import { achievedOf, sharesText, workloadText } from "./amounts";
import { type ColourBy, colours, groupOf } from "./slice-colours";

export interface MapDevice {
  node: string;
  index: number;
  uuid: string;
  name: string;
  usableBytes: number;
  freeBytes: number;
  freeShareBp: number;
  slices: number;
  maxSlices: number;
  exclusiveTo: string;
  problem: string; // Empty if the device is healthy and its node reachable.
}

const tile_width = 300;
const tile_height = 86;
const gap = 20;
const bar_y = 22;
const bar_height = 28;
const share_y = 54;
const share_height = 7;
const places_y = 68;

interface Hit {
  x: number;
  y: number;
  width: number;
  height: number;
  slice: NodeSlice;
}

interface Palette {
  text: string;
  muted: string;
  bar: string;
  bad: string;
  panel: string;
  of: (variable: string) => string;
}

function drawDevice(
  context: CanvasRenderingContext2D,
  device: MapDevice,
  slices: NodeSlice[],
  x: number,
  y: number,
  width: number,
  by: ColourBy,
  groups: Map<string, string>,
  colour: Palette,
  hits: Hit[],
) {
  context.fillStyle = device.problem ? colour.bad : colour.text;
  context.font = "12px system-ui, sans-serif";
  context.fillText(`${device.node} · ${device.index}`, x, y + 12, width * 0.4);
  context.fillStyle = device.problem ? colour.bad : colour.muted;
  context.textAlign = "right";
  context.fillText(
    device.problem || `${device.name.replace(/^NVIDIA /, "")}, ${bytes(device.freeBytes)} free`,
    x + width,
    y + 12,
    width * 0.58,
  );
  context.textAlign = "left";
  context.fillStyle = colour.bar;
  context.fillRect(x, y + bar_y, width, bar_height);
  context.fillRect(x, y + share_y, width, share_height);
  let memoryX = x;
  let shareX = x;
  for (const slice of slices) {
    const part = slice.parts.find((p) => p.uuid === device.uuid);
    if (!part) continue;
    const fill = colour.of(groups.get(groupOf(slice, by)) ?? "--s1");
    const full = (part.quota_bytes / device.usableBytes) * width;
    const shown = Math.max(full - 1, 1);
    context.globalAlpha = 0.35;
    context.fillStyle = fill;
    context.fillRect(memoryX, y + bar_y, shown, bar_height);
    context.globalAlpha = 1;
    const used = Math.min(1, part.charged_bytes / Math.max(part.quota_bytes, 1)) * bar_height;
    context.fillRect(memoryX, y + bar_y + bar_height - used, shown, used);
    if (full > 56) {
      context.fillStyle = used > bar_height * 0.6 ? colour.panel : colour.text;
      context.font = "11px system-ui, sans-serif";
      context.fillText(slice.name, memoryX + 5, y + bar_y + 18, full - 10);
    }
    const compute = ((slice.exclusive ? 10000 : part.share_bp) / 10000) * width;
    context.fillStyle = fill;
    if (compute > 0) context.fillRect(shareX, y + share_y, Math.max(compute - 1, 1), share_height);
    hits.push({ x: memoryX, y: y + bar_y, width: full, height: share_y + share_height - bar_y, slice });
    memoryX += full;
    shareX += compute;
  }
  const step = Math.min((width * 0.5) / device.maxSlices, 12);
  for (let i = 0; i < device.maxSlices; i++) {
    context.fillStyle = i < device.slices ? colour.muted : colour.bar;
    context.fillRect(x + i * step, y + places_y, step - 3, 4);
  }
  context.fillStyle = colour.muted;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "right";
  context.fillText(
    `${share(device.freeShareBp)} compute free · ${device.slices}/${device.maxSlices}`,
    x + width,
    y + places_y + 6,
  );
  context.textAlign = "left";
}

export function FleetMap({
  devices,
  slices,
  by,
}: {
  devices: MapDevice[];
  slices: NodeSlice[];
  by: ColourBy;
}) {
  const t = useT();
  const canvas = useRef<HTMLCanvasElement>(null);
  const hits = useRef<Hit[]>([]);
  const [width, setWidth] = useState(0);
  const [tip, setTip] = useState<{ x: number; y: number; slice: NodeSlice } | null>(null);
  const [, navigate] = useLocation();
  const isDark = useIsDark();
  const groups = useMemo(() => colours(slices, by), [slices, by]);
  const byDevice = useMemo(() => {
    const map = new Map<string, NodeSlice[]>();
    for (const slice of slices)
      for (const part of slice.parts) {
        const list = map.get(part.uuid);
        if (list) list.push(slice);
        else map.set(part.uuid, [slice]);
      }
    for (const list of map.values()) list.sort((a, b) => (a.name < b.name ? -1 : 1));
    return map;
  }, [slices]);
  const perRow = Math.max(1, Math.min(devices.length, Math.floor((width + gap) / (tile_width + gap))));
  const tile = width > 0 ? Math.min((width - gap * (perRow - 1)) / perRow, 640) : tile_width;
  const height = Math.ceil(devices.length / perRow) * (tile_height + gap) - gap;

  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: isDark changes the colours that CSS returns
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || width === 0) return;
    const scale = devicePixelRatio;
    element.width = width * scale;
    element.height = height * scale;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const known = new Map<string, string>();
    const of = (variable: string) => {
      let value = known.get(variable);
      if (!value) {
        value = cssColor(variable);
        known.set(variable, value);
      }
      return value;
    };
    const colour: Palette = {
      text: of("--text"),
      muted: of("--muted"),
      bar: of("--bar"),
      bad: of("--bad"),
      panel: of("--panel"),
      of,
    };
    hits.current = [];
    devices.forEach((device, i) => {
      const x = (i % perRow) * (tile + gap);
      const y = Math.floor(i / perRow) * (tile_height + gap);
      drawDevice(
        context,
        device,
        byDevice.get(device.uuid) ?? [],
        x,
        y,
        tile,
        by,
        groups,
        colour,
        hits.current,
      );
    });
  }, [devices, byDevice, width, height, perRow, tile, by, groups, isDark]);

  const find = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return hits.current.find(
      (hit) => x >= hit.x && x < hit.x + hit.width && y >= hit.y && y < hit.y + hit.height,
    )?.slice;
  };
  return (
    <div>
      {/* The table below the map has the same links for the keyboard. */}
      <canvas
        ref={canvas}
        className="map"
        style={{ height, cursor: tip ? "pointer" : "default" }}
        role="img"
        aria-label={t("Map of {devices} devices with {slices} slices. The view Table has the same content.", {
          devices: devices.length,
          slices: slices.length,
        })}
        onMouseMove={(event) => {
          const slice = find(event);
          setTip(slice ? { x: event.clientX, y: event.clientY, slice } : null);
        }}
        onMouseLeave={() => setTip(null)}
        onClick={(event) => {
          const slice = find(event);
          if (slice) navigate(`/slices/${encodeURIComponent(slice.node)}/${encodeURIComponent(slice.name)}`);
        }}
      />
      {tip && (
        <div className="map-tip" style={{ left: Math.min(tip.x + 12, innerWidth - 330), top: tip.y + 16 }}>
          <strong>{tip.slice.name}</strong> · {tip.slice.state}
          <br />
          {tip.slice.parts.map((part) => (
            <span key={part.uuid}>
              {t("device {n}", { n: part.index })}: {bytes(part.charged_bytes)} / {bytes(part.quota_bytes)}
              <br />
            </span>
          ))}
          {t("Compute")}: {sharesText(tip.slice)},{" "}
          {t("{used} used in 60 s", { used: percent(achievedOf(tip.slice)) })}
          <br />
          {workloadText(tip.slice)} · {t("account {account}", { account: tip.slice.account })}
        </div>
      )}
      <ul className="legend">
        {[...groups].slice(0, 16).map(([name, variable]) => (
          <li key={name}>
            <i style={{ background: `var(${variable})` }} />
            {by !== "idle"
              ? name
              : name === "busy"
                ? t("busy in the last minute")
                : t("idle {time}", { time: name })}
          </li>
        ))}
        <li className="muted">
          {t("dark: used; light: granted; thin bar: compute; dashes: places for slices")}
        </li>
      </ul>
    </div>
  );
}
