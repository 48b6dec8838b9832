// A search as a map of g against h: every expansion a dot, stepped through forward and back, all of it in the browser.
export default {
  props: { recording: Object, board: String },
  template: `
    <div class="us-map">
      <svg :viewBox="'0 0 ' + W + ' ' + H" role="img" aria-label="Expansions by g and h">
        <g v-for="f in contours" :key="'f' + f.f">
          <line class="contour" :class="{ optimum: f.optimum }" :x1="x(f.from)" :y1="y(f.f - f.from)" :x2="x(f.to)" :y2="y(f.f - f.to)" />
        </g>
        <g v-for="t in ticks.x" :key="'x' + t"><text :x="x(t)" :y="H - 26" text-anchor="middle">{{ t }}</text></g>
        <g v-for="t in ticks.y" :key="'y' + t"><text :x="32" :y="y(t) + 4" text-anchor="end">{{ t }}</text></g>
        <line class="axis" :x1="40" :y1="y(0)" :x2="W - 8" :y2="y(0)" /><line class="axis" :x1="40" :y1="10" :x2="40" :y2="y(0)" />
        <text :x="W - 10" :y="H - 6" text-anchor="end">g, the cost so far</text>
        <text :x="14" :y="10" text-anchor="start" :transform="'rotate(-90 14 10) translate(-150 0)'">h, the estimate of the rest</text>
        <circle v-for="(p, i) in waiting" :key="'w' + i" class="wait" :class="{ 'is-over': p.over }" :cx="p.x" :cy="p.y" r="4" v-show="p.parent <= at" />
        <g v-if="r.hidden" class="missed" role="button" tabindex="0" aria-label="Show the state that was missed" data-do="missed" @click="look" @keydown.enter="look" @keydown.space.prevent="look">
          <circle :cx="missed.x" :cy="missed.y" r="9" /><circle class="core" :cx="missed.x" :cy="missed.y" r="4" />
          <text :x="missed.x + (missed.x > W / 2 ? -14 : 14)" :y="missed.y - 9" :text-anchor="missed.x > W / 2 ? 'end' : 'start'">on a cheapest way, missed</text>
        </g>
        <circle v-for="(p, i) in points" :key="i" class="dot" :class="{ 'is-done': i <= at, 'is-over': p.over }" :cx="p.x" :cy="p.y" :r="i <= at ? 4.8 : 3.4" />
        <polyline class="path" :points="path" />
        <circle class="here" :cx="here.x" :cy="here.y" :r="aside ? 12 : 8" />
      </svg>
      <div class="us-scrubber">
        <button title="To the start" @click="go(0)" :disabled="at === 0">|&#x25C0;&#xFE0E;</button>
        <button title="One expansion back" data-do="back" @click="go(at - 1)" :disabled="at === 0">&#x25C0;&#xFE0E;</button>
        <button class="is-main" data-do="run" @click="run" :disabled="at === last && !running">{{ running ? "stop" : "play" }}</button>
        <button title="One expansion forward" data-do="step" @click="go(at + 1)" :disabled="at === last">&#x25B6;&#xFE0E;</button>
        <button title="To the end" data-do="last" @click="go(last)" :disabled="at === last">&#x25B6;&#xFE0E;|</button>
        <input type="range" min="0" :max="last" :value="at" @input="go(Number($event.target.value))" aria-label="Expansion">
        <span class="us-count">{{ at + 1 }} / {{ last + 1 }}</span>
      </div>
      <p v-if="aside" class="us-small" data-say="step">{{ r.hidden.text }}</p>
      <p v-else class="us-small" data-say="step">Expansion {{ at + 1 }}: g = {{ r.g[at] }}, h = {{ r.words[at].h }}, f = {{ r.words[at].f }}<template
        v-if="r.words[at].true">; truly {{ r.words[at].true }} to go<b v-if="r.over[at]" style="color: var(--over)">, {{ r.words[at].too_much }} too much</b></template>.
        <template v-if="r.action[at]"> Reached by {{ r.action[at] }}.</template></p>
    </div>`,
  data() { return { at: 0, aside: false, running: false, W: 620, H: 400 }; },
  computed: {
    r() { return this.recording; },
    last() { return this.r.g.length - 1; },
    top() {
      const all = (key) => Math.max(4, ...this.r[key], ...this.r.waiting[key]);
      return { g: all("g"), h: all("h") };
    },
    ticks() {
      const list = (top) => { const step = Math.max(1, Math.ceil((top * 50) / this.W)); return [...Array(Math.floor(top / step) + 1).keys()].map((i) => i * step); };
      return { x: list(this.top.g), y: list(this.top.h) };
    },
    contours() {
      const fs = new Map();
      if (this.r.optimum !== null) fs.set(this.r.optimum, true);
      if (this.r.cost !== null && this.r.cost !== this.r.optimum) fs.set(this.r.cost, false);
      return [...fs].map(([f, optimum]) => ({ f, optimum, from: Math.max(0, f - this.top.h), to: Math.min(this.top.g, f) }));
    },
    places() {
      const seen = new Map();
      // Those at one place lie around it on a spiral.
      const place = ({ g, h, over, parent }, i) => {
        [g, h, over, parent] = [g[i], h[i], over[i], parent[i]];
        const key = `${g} ${h}`, n = seen.get(key) || 0, turn = n * 2.4, far = 4.6 * Math.sqrt(n);
        seen.set(key, n + 1);
        const x = this.x(g) + Math.min(far, 22) * Math.cos(turn), y = this.y(h) + Math.min(far, 15) * Math.sin(turn);
        return { x, y, over, parent };
      };
      const all = (nodes) => nodes.g.map((_, i) => place(nodes, i));
      return { points: all(this.r), waiting: all(this.r.waiting) };
    },
    points() { return this.places.points; },
    waiting() { return this.places.waiting; },
    missed() { return this.waiting[0]; }, // where something was missed, it comes first
    here() { return this.aside ? this.missed : this.points[this.at]; },
    path() {
      const places = this.aside ? [`${this.missed.x},${this.missed.y}`] : [];
      for (let i = this.aside ? this.missed.parent : this.at; i >= 0; i = this.r.parent[i]) places.push(`${this.points[i].x},${this.points[i].y}`);
      return places.join(" ");
    },
  },
  watch: { recording() { this.at = 0; this.aside = false; this.running = false; this.show(); } },
  mounted() {
    // As wide as its place, up to a measure: then letters keep their size on a narrow screen.
    this.fitting = new ResizeObserver(() => { this.W = Math.max(280, Math.min(620, this.$el.clientWidth)); });
    this.fitting.observe(this.$el);
    this.show();
  },
  unmounted() { this.fitting.disconnect(); },
  methods: {
    x(g) { return 52 + ((this.W - 80) * g) / this.top.g; },
    y(h) { return this.H - 46 - ((this.H - 66) * h) / this.top.h; },
    go(to) { this.running = false; this.move(to); },
    move(to) { this.aside = false; this.at = Math.max(0, Math.min(this.last, to)); this.show(); },
    // The state that was missed, and the way to it.
    look() { this.move(this.last); this.running = false; this.aside = true; this.show(); },
    show() {
      const board = (window.undershootBoards || {})[this.board];
      if (board) board.show(this.aside ? this.r.hidden.state : this.r.states[this.at]);
      else if (!this.waited) { this.waited = true; setTimeout(() => this.show(), 300); }
    },
    async run() {
      this.running = !this.running;
      const pause = Math.max(12, Math.min(250, 9000 / (this.last + 1)));
      while (this.running && this.at < this.last) {
        this.move(this.at + 1);
        await new Promise((done) => setTimeout(done, pause));
      }
      this.running = false;
    },
  },
};
