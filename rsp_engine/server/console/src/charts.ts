// Charts over windows, in the colours of the theme. Each has a text for those who do not see it.
import uPlot from "uplot";
import { h, setAttr, svg } from "./dom";
import { number, time } from "./format";

export interface Series {
  label: string;
  values: (number | null)[];
  /** A colour of the palette, 1 to 6. */
  colour: number;
  dash?: number[];
  bars?: boolean;
}

const colourOf = (index: number): string => css(`--series-${index}`);

function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Return the style of a border that looks like a dashed line. */
const borderOf = (dash: number[] = []): string => (dash.length === 0 ? "solid" : dash[0]! < 4 ? "dotted" : "dashed");

const redraws = new Set<WeakRef<Chart>>();

/** Draw all charts again, in the colours of another theme. */
export function redrawCharts(): void {
  for (const ref of redraws) {
    const chart = ref.deref();
    if (chart === undefined) redraws.delete(ref);
    else chart.rebuild();
  }
}

export class Chart {
  readonly element: HTMLElement;
  private readonly plotted: HTMLElement;
  private plot: uPlot | null = null;
  private shape = "";
  private times: number[] = [];
  private series: Series[] = [];

  constructor(
    private readonly title: string,
    private readonly options: { height?: number; range?: [number, number]; inverted?: boolean; whole?: boolean } = {},
  ) {
    this.plotted = h("div", { class: "plot", role: "img", "aria-label": title });
    this.element = h("figure", { class: "chart" }, h("figcaption", {}, title), this.plotted);
    new ResizeObserver(() => this.resize()).observe(this.plotted);
    redraws.add(new WeakRef(this));
  }

  /** Show series over the closes of windows. */
  show(times: number[], series: Series[]): void {
    this.times = times;
    this.series = series;
    const shape = JSON.stringify(series.map(({ label, colour, dash, bars }) => [label, colour, dash, bars]));
    if (this.plot === null || shape !== this.shape) {
      this.shape = shape;
      this.rebuild();
    } else {
      this.plot.setData(this.data());
    }
    const last = series.map((s) => `${s.label} ${number(s.values.at(-1))}`).join(", ");
    setAttr(this.plotted, "aria-label", `${this.title}: ${times.length} windows; the last one: ${last}`);
  }

  private data(): uPlot.AlignedData {
    return [this.times.map((_, index) => index), ...this.series.map((s) => s.values)] as uPlot.AlignedData;
  }

  rebuild(): void {
    this.plot?.destroy();
    this.plot = null;
    const width = this.plotted.clientWidth;
    if (width === 0) return;
    const { height = 150, range, inverted, whole } = this.options;
    const axis = { stroke: css("--muted"), font: "12px system-ui, sans-serif", grid: { stroke: css("--grid"), width: 1 }, ticks: { show: false } };
    this.plot = new uPlot(
      {
        width,
        height,
        padding: [null, 32, null, null], // half of the last label
        cursor: { drag: { x: false, y: false }, points: { size: 6 } },
        legend: { show: this.series.length > 1, markers: { dash: (_, place) => borderOf(this.series[place - 1]?.dash) } },
        scales: {
          x: { time: false, range: (_, low, high) => (low === high ? [low - 1, high + 1] : [low, high]) },
          y: {
            dir: inverted ? -1 : 1,
            range: (_, low, high) => range ?? (inverted ? [0.5, Math.max(high ?? 1, 2) + 0.5] : [Math.min(0, low ?? 0), Math.max(high ?? 1, 1e-9) * 1.05]),
          },
        },
        axes: [
          { ...axis, grid: { show: false }, size: 28, space: 90, incrs: [1, 2, 5, 10, 20, 50, 100], values: (_, at) => at.map((i) => (Number.isInteger(i) && this.times[i] !== undefined ? time(this.times[i]) : "")) },
          { ...axis, size: 48, space: whole ? 15 : 28, incrs: whole ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5] : undefined!, values: (_, at) => at.map((v) => number(v)) },
        ],
        series: [
          { label: "window", value: (_, i) => time(this.times[i ?? this.times.length - 1]) },
          ...this.series.map((s, place): uPlot.Series => ({
            label: s.label,
            stroke: colourOf(s.colour),
            width: 2,
            dash: s.dash ?? [],
            points: { show: true, size: 4, fill: colourOf(s.colour) },
            value: (_plot, v, _series, at) => number(at === null || at === undefined ? this.series[place]?.values.at(-1) : v),
            ...(s.bars ? { paths: uPlot.paths.bars!({ size: [0.7, 24] }), fill: `${colourOf(s.colour)}55`, points: { show: false } } : {}),
          })),
        ],
      },
      this.data(),
      this.plotted,
    );
  }

  private resize(): void {
    const width = this.plotted.clientWidth;
    if (width === 0) return;
    if (this.plot === null) this.rebuild();
    else if (this.plot.width !== width) this.plot.setSize({ width, height: this.options.height ?? 150 });
  }
}

const WIDE = 96, HIGH = 24;

/** Create a small line of rates; `draw` sets them. */
export function sparkline(): { element: SVGElement; draw: (values: readonly number[]) => void } {
  const line = svg("path", { class: "spark-line" });
  const area = svg("path", { class: "spark-area" });
  const element = svg("svg", { class: "spark", viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" }, area, line);
  return {
    element,
    draw: (values) => {
      const most = Math.max(...values, 1e-9);
      const step = WIDE / Math.max(values.length - 1, 1);
      const points = values.map((v, i) => `${(i * step).toFixed(1)} ${(HIGH - 2 - (v / most) * (HIGH - 4)).toFixed(1)}`);
      const path = points.length > 1 ? `M${points.join("L")}` : "";
      setAttr(line, "d", path);
      setAttr(area, "d", path && `${path}L${WIDE} ${HIGH}L0 ${HIGH}Z`);
    },
  };
}
