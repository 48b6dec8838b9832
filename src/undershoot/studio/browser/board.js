// A board of any puzzle, with its history: the server sends states once, and everything that moves is moved here.
const FACES = {
  U: "rotateX(90deg)", D: "rotateX(-90deg)", F: "", B: "rotateY(180deg)", R: "rotateY(90deg)", L: "rotateY(-90deg)",
};
const STEP = 320, FAST = 110;
const MOST_LABELS = 26; // pancakes that have room for a number each
const TELL = 300; // ms between what is said while a history plays
const FEW = 40; // moves whose buttons stand there without scrolling

function make(tag, classes, parent) {
  const element = document.createElement(tag);
  element.className = classes;
  if (parent) parent.appendChild(element);
  return element;
}

// Each drawing has place(state), which shows a state, and may have turn(move, ms), which moves there and is waited for.
const DRAWINGS = {
  lights(root, spec, act) {
    root.style.setProperty("--columns", spec.columns);
    const cells = spec.actions.map((name, i) => {
      const cell = make("button", "us-light", root);
      cell.onclick = () => act(name);
      cell.dataset.cell = i;
      cell.onkeydown = (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -spec.columns, ArrowDown: spec.columns }[event.key];
        if (!step) return;
        const next = cells[i + step];
        if (next) next.focus();
        event.preventDefault();
      };
      return cell;
    });
    return {
      place(state) {
        cells.forEach((cell, i) => {
          cell.classList.toggle("is-lit", state[i] === 1);
          cell.setAttribute("aria-label", `${spec.actions[i]}, ${state[i] ? "lit" : "dark"}`);
          cell.setAttribute("aria-pressed", String(state[i] === 1));
        });
      },
    };
  },

  tiles(root, spec, act) {
    root.style.setProperty("--columns", spec.columns);
    root.style.setProperty("--rows", spec.rows);
    const tiles = spec.labels.map((label, value) => {
      if (value === spec.blank) return null;
      const tile = make("button", `us-tile ${spec.odd[value] ? "is-odd" : ""}`, root);
      tile.textContent = label;
      return tile;
    });
    return {
      place(state, legal) {
        const blank = state.indexOf(spec.blank);
        state.forEach((value, cell) => {
          const tile = tiles[value];
          if (!tile) return;
          const row = Math.floor(cell / spec.columns), column = cell % spec.columns;
          tile.style.transform = `translate(${column * 100}%, ${row * 100}%)`;
          const way = spec.ways[`${cell - blank}`], beside = Math.abs((blank % spec.columns) - column) <= 1;
          const action = way && beside && (!legal || legal.includes(way)) ? way : null;
          tile.classList.toggle("can-move", Boolean(action));
          tile.onclick = action ? () => act(action) : null;
          tile.tabIndex = action ? 0 : -1;
        });
      },
    };
  },

  cube(root, spec) {
    const stage = make("div", "us-cube-stage", root), cube = make("div", "us-cube-body", stage);
    stage.style.setProperty("--side", spec.side);
    let view = [-26, -34];
    const turnView = () => { cube.style.transform = `rotateX(${view[0]}deg) rotateY(${view[1]}deg)`; };
    const at = ([x, y, z]) => `translate3d(calc(var(--cubie) * ${x / 2}), calc(var(--cubie) * ${-y / 2}), calc(var(--cubie) * ${z / 2}))`;
    const cubies = new Map();
    const cubieAt = (spot) => {
      const key = spot.join();
      if (!cubies.has(key)) {
        const cubie = make("div", "us-cubie", cube), sides = {};
        cubie.style.transform = at(spot);
        for (const face of Object.keys(FACES)) {
          sides[face] = make("div", "us-side", cubie);
          sides[face].style.transform = `${FACES[face]} translateZ(calc(var(--cubie) / 2))`;
        }
        cubies.set(key, { cubie, sides, spot });
      }
      return cubies.get(key);
    };
    const stickers = spec.stickers.map(({ spot, face }, i) => {
      const sticker = make("div", "us-sticker", cubieAt(spot).sides[face]);
      sticker.dataset.cell = i;
      return sticker;
    });
    turnView();
    let from = null;
    stage.onpointerdown = (event) => { from = [event.clientX, event.clientY, ...view]; stage.setPointerCapture(event.pointerId); };
    stage.onpointermove = (event) => {
      if (!from) return;
      view = [Math.max(-89, Math.min(89, from[2] - (event.clientY - from[1]) * 0.5)), from[3] + (event.clientX - from[0]) * 0.5];
      turnView();
    };
    stage.onpointerup = stage.onpointercancel = () => { from = null; };
    stage.tabIndex = 0;
    stage.setAttribute("role", "img");
    stage.setAttribute("aria-label", "The cube; drag it or use the arrow keys to look at it from elsewhere");
    stage.onkeydown = (event) => {
      const step = { ArrowLeft: [0, -15], ArrowRight: [0, 15], ArrowUp: [-15, 0], ArrowDown: [15, 0] }[event.key];
      if (!step) return;
      view = [Math.max(-89, Math.min(89, view[0] + step[0])), view[1] + step[1]];
      turnView();
      event.preventDefault();
    };
    return {
      place(state) {
        stickers.forEach((sticker, i) => {
          sticker.style.setProperty("--sticker", spec.colours[state[i]]);
          sticker.dataset.value = state[i];
        });
      },
      async turn(move, ms) {
        const turn = spec.turns[move];
        if (!turn) return;
        const [x, y, z] = turn.normal, along = turn.normal.findIndex((v) => v !== 0);
        const layer = [...cubies.values()].filter(({ spot }) => spot[along] === turn.normal[along] * (spec.side - 1));
        const spin = (angle, spot) => `rotate3d(${x}, ${-y}, ${z}, ${angle}deg) ${at(spot)}`;
        const timing = { duration: ms * (Math.abs(turn.angle) > 90 ? 1.4 : 1), easing: "cubic-bezier(.45,.05,.3,1)", fill: "none" };
        await Promise.all(layer.map(({ cubie, spot }) =>
          cubie.animate([{ transform: spin(0, spot) }, { transform: spin(turn.angle, spot) }], timing).finished.catch(() => null)));
      },
    };
  },

  pancakes(root, spec, act) {
    root.style.setProperty("--count", spec.labels.length);
    make("div", "us-plate", root);
    const cakes = spec.labels.map((label, value) => {
      const cake = make("button", "us-pancake", root);
      cake.style.setProperty("--width", `${26 + (70 * (value + 1)) / spec.labels.length}%`);
      cake.style.setProperty("--tone", value / Math.max(1, spec.labels.length - 1));
      cake.textContent = spec.labels.length <= MOST_LABELS ? label : "";
      cake.title = label;
      return cake;
    });
    return {
      place(state) {
        state.forEach((value, cell) => {
          cakes[value].style.top = `calc(${cell} * 100% / var(--count))`;
          const action = spec.actions[cell];
          cakes[value].onclick = action ? () => act(action) : null;
          cakes[value].tabIndex = action ? 0 : -1;
          cakes[value].setAttribute("aria-label", `${spec.labels[value]}${action ? `, ${action} turns over down to here` : ""}`);
        });
      },
    };
  },

  ring(root, spec, act) {
    const count = spec.labels.length, places = [];
    const tokens = spec.labels.map((label, value) => {
      const token = make("button", `us-token ${value % 2 ? "is-odd" : ""}`, root);
      token.textContent = label;
      return token;
    });
    const mark = (from, on) => places.forEach((token, i) => token.classList.toggle("in-turnstile", on && (i - from + count) % count < spec.window));
    make("div", "us-ring-hint", root).textContent = `each turns over ${spec.window}`;
    root.style.setProperty("--token", `${Math.min(15, 225 / count)}cqw`);
    return {
      place(state) {
        state.forEach((value, cell) => {
          const angle = (2 * Math.PI * cell) / count - Math.PI / 2, token = tokens[value];
          token.style.left = `${50 + 42 * Math.cos(angle)}%`;
          token.style.top = `${50 + 42 * Math.sin(angle)}%`;
          token.onclick = () => act(spec.actions[cell]);
          token.onpointerenter = token.onfocus = () => mark(cell, true);
          token.onpointerleave = token.onblur = () => mark(cell, false);
          places[cell] = token;
        });
      },
    };
  },

  cells(root, spec) {
    root.style.setProperty("--columns", spec.columns);
    root.style.setProperty("--rows", spec.rows);
    const cells = spec.places.map(([row, column], i) => {
      const cell = make("div", "us-cell", root);
      cell.style.gridArea = `${row + 1} / ${column + 1}`;
      cell.dataset.cell = i;
      return cell;
    });
    return {
      place(state) {
        cells.forEach((cell, i) => {
          cell.textContent = spec.labels[state[i]];
          cell.style.background = spec.colours[state[i]];
          cell.style.color = spec.inks[state[i]];
        });
      },
    };
  },
};

export default {
  props: { spec: Object, first: Array, from: Number, plain: Boolean, most: Number },
  template: `
    <div class="us-board" :class="['is-' + spec.kind, { 'is-solved': solved, 'is-plain': plain }]">
      <div class="us-board-area"><div ref="drawing" :class="'us-drawing us-' + spec.kind"></div></div>
      <div v-if="!plain" class="us-scrubber" role="group" aria-label="History">
        <button title="To the start (Home)" @click="soon(() => go(0))" :disabled="at === 0">|&#x25C0;&#xFE0E;</button>
        <button title="Back (Ctrl-Z)" data-do="undo" @click="soon(() => go(at - 1))" :disabled="at === 0">&#x25C0;&#xFE0E;</button>
        <button class="is-main" :title="playing ? 'Stop (P)' : 'Play to the end (P)'" data-do="play" @click="soon(toggle)"
          :disabled="at === frames.length - 1 && !playing">{{ playing ? "stop" : "play" }}</button>
        <button title="Forward (Ctrl-Y)" data-do="redo" @click="soon(() => go(at + 1))" :disabled="at === frames.length - 1">&#x25B6;&#xFE0E;</button>
        <button title="To the end (End)" @click="soon(() => go(frames.length - 1))" :disabled="at === frames.length - 1">&#x25B6;&#xFE0E;|</button>
        <input type="range" min="0" :max="Math.max(1, frames.length - 1)" :value="at" :disabled="frames.length < 2"
          aria-label="Place in the history" @input="slide(Number($event.target.value))">
        <span class="us-count">{{ at }} / {{ frames.length - 1 }}</span>
      </div>
      <div v-if="!plain && frames.length > 1" class="us-moves" ref="moves" role="group" aria-label="Moves so far; arrow keys go along them"
        @keydown.left.prevent.stop="walk(-1)" @keydown.right.prevent.stop="walk(1)">
        <button :tabindex="at === 0 ? 0 : -1" :class="{ 'is-here': at === 0 }" @click="soon(() => go(0))">start</button>
        <button v-for="(frame, i) in frames.slice(1)" :key="i" :tabindex="at === i + 1 ? 0 : -1" @click="soon(() => go(i + 1))"
          :class="{ 'is-here': at === i + 1, 'is-past': i < at, 'is-solution': frame.found }">{{ frame.move }}</button>
      </div>
      <label v-if="!plain && spec.moves.length > FEW" class="us-field us-find"><span>Find one of {{ spec.moves.length }} moves; Enter plays it</span>
        <input data-do="find" :list="'moves' + $.uid" spellcheck="false" autocomplete="off" v-model="sought" @keydown.enter="find">
        <datalist :id="'moves' + $.uid"><option v-for="name in legal.filter((name) => name.includes(sought)).slice(0, 60)" :key="name" :value="name" /></datalist></label>
      <div v-if="!plain && spec.moves.length" class="us-buttons" :class="['is-' + spec.kind, { 'is-many': spec.moves.length > FEW }]">
        <button v-for="move in spec.moves" :key="move.name" :disabled="!legal.includes(move.name)" :data-move="move.name"
          :title="move.key ? 'Key: ' + move.key : ''" @click="act(move.name)">{{ move.name }}<kbd v-if="showsKeys && move.key">{{ move.key }}</kbd></button>
      </div>
    </div>`,
  data() { return { frames: this.first, at: this.from || 0, playing: false, legal: [], solved: false, sought: "", FEW }; },
  // Keys of tiles and cubes go by the names of their moves.
  computed: { showsKeys() { return !["tiles", "cube"].includes(this.spec.kind); } },
  mounted() {
    this.drawing = DRAWINGS[this.spec.kind](this.$refs.drawing, this.spec, (move) => this.act(move));
    this.queue = Promise.resolve();
    this.running = 0;
    this.waiting = [];
    this.isAsked = false; // whether a move was not answered yet
    this.told = this.at;
    this.toldWhen = performance.now();
    this.settle();
    if (!this.plain) {
      this.listener = (event) => this.key(event);
      document.addEventListener("keydown", this.listener);
    }
    window.undershootBoards = window.undershootBoards || {};
    window.undershootBoards[this.$el.id] = this;
  },
  unmounted() { document.removeEventListener("keydown", this.listener); },
  methods: {
    // What is done before the last move was answered waits for that, since it is meant for the board as it is then.
    soon(what) {
      if (this.isAsked) this.waiting.push(what);
      else what();
    },
    act(move) {
      this.soon(() => {
        if (!(this.frames[this.at].legal || []).includes(move)) return;
        this.playing = false;
        this.sync();
        this.isAsked = true;
        this.$emit("act", move);
      });
    },
    // A move by its name.
    find() {
      if (!this.legal.includes(this.sought)) return;
      this.act(this.sought);
      this.sought = "";
    },
    answered() {
      this.isAsked = false;
      while (this.waiting.length && !this.isAsked) this.waiting.shift()();
    },
    // Says where in the history we are, if the server does not know it yet: a move is played from there.
    sync() {
      clearTimeout(this.telling);
      if (this.told !== this.at) { this.told = this.at; this.$emit("at", this.at); }
      this.toldWhen = performance.now();
    },
    // Shows the frame at hand as it is.
    settle() {
      const frame = this.frames[this.at];
      this.legal = frame.legal || [];
      this.solved = Boolean(frame.solved);
      this.drawing.place(frame.state, frame.legal);
      this.$nextTick(() => {
        const here = this.$refs.moves && this.$refs.moves.querySelector(".is-here");
        if (here) here.parentElement.scrollTop = here.offsetTop - here.parentElement.offsetTop - 40;
      });
    },
    // One step of the history, animated where there is something to animate.
    step(to, ms) {
      const forward = to > this.at, frame = this.frames[forward ? to : this.at];
      const move = forward ? frame.move : frame.undo;
      this.at = to;
      this.running += 1;
      this.queue = this.queue.then(async () => {
        if (this.drawing.turn && move && this.running < 6) await this.drawing.turn(move, ms);
        this.running -= 1;
        if (this.running === 0) this.settle();
        else this.drawing.place(this.frames[Math.min(to, this.frames.length - 1)].state);
      });
      return this.queue;
    },
    go(to) {
      this.playing = false;
      if (to < 0 || to >= this.frames.length || to === this.at) return;
      if (Math.abs(to - this.at) === 1) this.step(to, STEP);
      else { this.at = to; this.queue = this.queue.then(() => this.settle()); }
      this.tell();
    },
    // Along the list of moves, which the Tab key passes in one step.
    walk(by) {
      this.soon(() => {
        this.go(this.at + by);
        this.$nextTick(() => this.$refs.moves.querySelector(".is-here").focus());
      });
    },
    slide(to) {
      this.soon(() => {
        this.playing = false;
        this.at = Math.min(to, this.frames.length - 1);
        this.settle();
        this.tell();
      });
    },
    tell() {
      clearTimeout(this.telling);
      this.telling = setTimeout(() => this.sync(), 60);
    },
    async toggle() {
      this.playing = !this.playing;
      const mine = (this.turn = (this.turn || 0) + 1);
      while (this.playing && mine === this.turn && this.at < this.frames.length - 1) {
        await this.step(this.at + 1, this.frames.length > 40 ? FAST : STEP);
        if (performance.now() - this.toldWhen > TELL) this.sync(); // what is known belongs to the state that is shown
        await new Promise((done) => setTimeout(done, this.drawing.turn ? 40 : this.frames.length > 40 ? FAST : STEP));
      }
      if (mine === this.turn) { this.playing = false; this.sync(); }
    },
    // Called by the server.
    push(frame, from) {
      this.playing = false;
      this.at = from; // a solution may have come just before
      const before = this.frames.slice(0, this.at + 1);
      if (before.length > this.most) { before.shift(); this.at -= 1; } // the server forgets the first one, too
      this.frames = [...before, frame];
      this.step(this.at + 1, STEP * 0.7);
      this.told = this.at;
      this.answered();
    },
    set(frames, at, play) {
      this.playing = false;
      this.turn = (this.turn || 0) + 1;
      // Whoever pasted a state goes on with the board, by its keys.
      if (document.activeElement && document.activeElement.matches("[data-do=text]")) document.activeElement.blur();
      this.frames = frames;
      this.at = this.told = at;
      this.isAsked = false;
      this.waiting = [];
      this.queue = this.queue.then(() => this.settle());
      if (play) this.queue.then(() => { if (!this.playing) this.toggle(); });
    },
    show(state) {
      this.frames = [{ state }];
      this.at = 0;
      this.drawing.place(state);
    },
    address(text) { history.replaceState(history.state, "", text); },
    key(event) {
      const target = event.target;
      if (event.altKey || event.metaKey || target.matches("input:not([type=range]), textarea, select, [contenteditable], .q-field *, .q-menu *, .q-dialog *")) return;
      const done = (what) => { what(); event.preventDefault(); };
      if (event.ctrlKey) {
        if (event.key === "z") done(() => this.soon(() => this.go(this.at - 1)));
        if (event.key === "y" || event.key === "Z") done(() => this.soon(() => this.go(this.at + 1)));
        return;
      }
      if (target.matches("input[type=range]")) return;
      if (event.key === "Home") return done(() => this.soon(() => this.go(0)));
      if (event.key === "End") return done(() => this.soon(() => this.go(this.frames.length - 1)));
      if (event.key === "p" || event.key === "P") return done(() => this.soon(() => this.toggle()));
      if (this.spec.kind === "cube" && event.key === "2") { this.half = true; return; }
      const half = this.half ? "2" : "";
      this.half = false;
      const found = this.spec.moves.find((move) => move.key === half + event.key);
      if (found && !(target.matches(".us-light") && event.key.startsWith("Arrow"))) done(() => this.act(found.name));
    },
  },
};
