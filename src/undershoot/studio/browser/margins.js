// The distribution of h - h*, a margin that can be dragged, and what it comes to; all of it was computed before.
export default {
  props: { found: Object, marks: Array },
  template: `
    <div class="us-margins">
      <svg ref="svg" :viewBox="'0 0 ' + W + ' ' + H" @pointerdown="take" @pointermove="drag" @pointerup="held = false" style="touch-action: none">
        <rect class="over-area" :x="x(0.5)" y="20" :width="Math.max(0, W - 16 - x(0.5))" :height="B - 20" />
        <rect v-for="(b, i) in bins" :key="i" class="bin" :class="{ 'is-over': b.over }" :x="b.x" :y="B - b.height" :width="Math.max(1, b.width - 1)" :height="b.height" />
        <line class="axis" :x1="16" :x2="W - 16" :y1="B" :y2="B" />
        <g v-for="t in ticks" :key="t"><text :x="x(t)" :y="B + 17" text-anchor="middle">{{ t }}</text></g>
        <text :x="W - 16" :y="B + 36" text-anchor="end">h − h*, with this margin</text>
        <text class="over-word" :x="W - 16" y="14" text-anchor="end">overestimates</text>
        <line class="axis" :x1="16" :x2="W - 16" :y1="S" :y2="S" />
        <g v-for="m in placed" :key="m.method"><line v-for="(x, i) in m.all" :key="i" class="tick" :x1="x" :x2="x" :y1="S - 5" :y2="S + 5" />
          <line class="marker" :x1="m.x" :x2="m.x" :y1="S" :y2="S + 22 + 16 * m.row" />
          <text :x="Math.max(44, Math.min(W - 44, m.x))" :y="S + 34 + 16 * m.row" text-anchor="middle" :style="{ fill: m.violations ? 'var(--over)' : 'var(--proven)', 'font-weight': 600 }">{{ m.method }}</text></g>
        <line class="handle" :x1="sx(margin)" :x2="sx(margin)" :y1="S - 12" :y2="S + 12" />
        <circle class="grip" :cx="sx(margin)" :cy="S" r="9" tabindex="0" role="slider" aria-label="Margin" :aria-valuenow="margin"
          :aria-valuemin="found.grid[0].margin" :aria-valuemax="found.grid[found.grid.length - 1].margin"
          @keydown.left.prevent="go(at - 1)" @keydown.right.prevent="go(at + 1)" data-do="margin" />
        <text :x="W - 16" :y="S - 14" text-anchor="end">the margin t that is taken off: drag it</text>
        <text :x="16" :y="S - 14">{{ found.grid[0].margin }}</text><text v-if="!placed.length" :x="W - 16" :y="S + 26" text-anchor="end">{{ found.grid[found.grid.length - 1].margin }}</text>
      </svg>
      <p class="us-small">Heights are fourth roots of counts, so that a single state is seen beside thousands.</p>
      <div class="us-figures" style="margin-top: .8rem">
        <div class="us-figure"><b data-figure="margin">{{ margin }}</b><span>margin t</span></div>
        <div class="us-figure" :class="here.violations ? 'is-over' : 'is-good'"><b data-figure="violations">{{ here.violations.toLocaleString("en") }}</b><span>of {{ found.states.toLocaleString("en") }} states above h*</span></div>
        <div class="us-figure"><b data-figure="mean">{{ here.mean_h.toFixed(3) }}</b><span>mean h (true {{ found.mean_true.toFixed(3) }})</span></div>
        <div class="us-figure"><b data-figure="expanded">{{ near.expanded === null ? "…" : near.expanded.toFixed(1) }}</b><span>mean expansions of A*{{ where }}{{ stopped }}</span></div>
        <div class="us-figure" :class="near.suboptimal ? 'is-over' : ''"><b data-figure="suboptimal">{{ near.suboptimal === null ? "…" : near.suboptimal }}</b><span>of {{ near.suboptimal === null ? found.instances : near.solved }} solutions not optimal{{ where }}</span></div>
      </div>
    </div>`,
  data() { return { at: this.found.start, held: false, W: 640, B: 250, S: 332 }; },
  computed: {
    H() { return this.S + 34 + 16 * Math.max(0, ...this.placed.map((m) => m.row + 1)); },
    here() { return this.found.grid[this.at]; },
    margin() { return this.here.margin; },
    near() {
      const measured = this.found.grid.filter((row) => row.expanded !== null);
      if (!measured.length) return { expanded: null, suboptimal: null, margin: this.margin };
      return measured.reduce((best, row) => (Math.abs(row.margin - this.margin) < Math.abs(best.margin - this.margin) ? row : best));
    },
    where() { return this.near.margin === this.margin ? "" : " at " + this.near.margin; },
    stopped() {
      const { stopped, most_expanded } = this.near;
      return stopped ? `; ${stopped} of ${this.found.instances} searches were stopped at ${most_expanded.toLocaleString("en")}` : "";
    },
    range() { const e = this.found.edges; return [e[0], e[e.length - 1]]; },
    bins() {
      const counts = this.here.histogram, edges = this.found.edges, top = Math.max(...this.found.grid.map((row) => Math.max(...row.histogram)));
      return counts.map((count, i) => ({
        x: this.x(edges[i]), width: this.x(edges[i + 1]) - this.x(edges[i]), over: edges[i] >= 0,
        // The fourth root lets a single state be seen beside thousands.
        height: count ? Math.max(2, ((this.B - 30) * Math.pow(count / top, 0.25))) : 0,
      }));
    },
    ticks() { const [a, b] = this.range, step = Math.max(1, Math.ceil(((b - a) * 50) / this.W)); const out = []; for (let t = Math.ceil(a); t <= b; t += step) out.push(t); return out; },
    placed() {
      const ends = [];
      // Of several margins the label is at the one in the middle.
      const middle = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];
      return this.marks.map((m) => ({ ...m, all: m.margins.map((t) => this.sx(t)), x: this.sx(middle(m.margins)) })).sort((a, b) => a.x - b.x).map((m) => {
        let row = 0;
        while (ends[row] !== undefined && m.x - ends[row] < 74) row += 1;
        ends[row] = m.x;
        return { ...m, row };
      });
    },
  },
  mounted() {
    // As wide as its place, up to a measure: then letters keep their size on a narrow screen.
    this.fitting = new ResizeObserver(() => { this.W = Math.max(280, Math.min(640, this.$el.clientWidth)); });
    this.fitting.observe(this.$el);
  },
  unmounted() { this.fitting.disconnect(); },
  methods: {
    x(v) { const [a, b] = this.range; return 16 + ((this.W - 32) * (v - a)) / (b - a); },
    sx(t) { const g = this.found.grid, a = g[0].margin, b = g[g.length - 1].margin; return Math.max(16, Math.min(this.W - 16, 16 + ((this.W - 32) * (t - a)) / (b - a))); },
    go(to) { this.at = Math.max(0, Math.min(this.found.grid.length - 1, to)); },
    take(event) { this.held = true; this.$refs.svg.setPointerCapture(event.pointerId); this.drag(event); },
    drag(event) {
      if (!this.held) return;
      const box = this.$refs.svg.getBoundingClientRect(), g = this.found.grid;
      const share = (((event.clientX - box.left) / box.width) * this.W - 16) / (this.W - 32);
      this.go(Math.round(share * (g.length - 1)));
    },
  },
};
