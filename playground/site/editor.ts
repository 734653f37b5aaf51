// The editor of programs: colours, completion, help, and errors where they are.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, pickedCompletion } from "@codemirror/autocomplete";
import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import type { Diagnostic } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import type { Extension } from "@codemirror/state";
import { EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import { make } from "./dom";

export interface FunctionEntry {
  name: string;
  signature: string;
  summary: string;
  example: string;
  result: string;
  section: string;
}

export interface Problem {
  code?: string;
  message: string;
  help?: string | null;
  start?: number;
  end?: number;
  labels?: { start: number; end: number; text: string }[];
  rendered?: string;
}

// Offsets in UTF-16 units of offsets in bytes of UTF-8.
export function unitsOf(text: string): (bytes: number) => number {
  const encoder = new TextEncoder();
  if (encoder.encode(text).length === text.length) return (bytes) => Math.min(bytes, text.length);
  const units: number[] = [];
  let at = 0;
  for (const letter of text) {
    const length = encoder.encode(letter).length;
    for (let byte = 0; byte < length; byte++) units.push(at);
    at += letter.length;
  }
  return (bytes) => units[bytes] ?? text.length;
}

function language(known: ReadonlyMap<string, FunctionEntry>) {
  return StreamLanguage.define<null>({
    name: "layouts",
    token(stream) {
      if (stream.eatSpace()) return null;
      if (stream.match(/^#.*/)) return "comment";
      if (stream.match(/^S(?=<)/) || stream.match(/^F2(?=[<[])/)) return "typeName";
      if (stream.match(/^0x[0-9a-fA-F_]+/) || stream.match(/^_?\d[\d_]*/)) return "number";
      if (stream.match(/^(true|false)\b/)) return "bool";
      if (stream.match(/^o(?![A-Za-z0-9_])/)) return "operatorKeyword";
      const word = stream.match(/^[A-Za-z][A-Za-z0-9_]*/) as RegExpMatchArray | null;
      if (word) return known.has(word[0]) && /^\s*\(/.test(stream.string.slice(stream.pos)) ? "function" : "variableName";
      if (stream.match(/^->/)) return "operator";
      const letter = stream.next();
      if (letter && "()[]{}".includes(letter)) return "bracket";
      if (letter && ":@^=+-*/%?.".includes(letter)) return "operator";
      return null;
    },
    tokenTable: { function: tags.function(tags.variableName) },
    languageData: { commentTokens: { line: "#" } },
  });
}

const COLOURS = HighlightStyle.define([
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: tags.number, color: "var(--number)" },
  { tag: tags.bool, color: "var(--number)" },
  { tag: tags.function(tags.variableName), color: "var(--function)" },
  { tag: tags.typeName, color: "var(--function)" },
  { tag: tags.operatorKeyword, color: "var(--accent)", fontWeight: "600" },
  { tag: tags.operator, color: "var(--operator)" },
  { tag: tags.variableName, color: "var(--ink)" },
]);

const LOOK = EditorView.theme({
  "&": { backgroundColor: "var(--field)", color: "var(--ink)", borderRadius: "6px", border: "1px solid var(--line)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", fontSize: "14px", lineHeight: "1.6", minHeight: "7.5em" },
  ".cm-content": { caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--quiet)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--soft)" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px", boxShadow: "0 6px 24px #0004" },
  ".cm-tooltip-autocomplete > ul > li": { color: "var(--ink)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "inherit", fontStyle: "normal", opacity: "1" },
  ".cm-completionInfo": { backgroundColor: "var(--panel)", color: "var(--ink)" },
  ".cm-diagnostic": { color: "var(--ink)", borderLeft: "3px solid var(--wrong)" },
  ".cm-matchingBracket": { backgroundColor: "var(--mark) !important", outline: "none" },
  ".help": { padding: "8px 12px", maxWidth: "44ch", font: "13px/1.5 var(--sans)" },
  ".help code": { fontFamily: "var(--mono)", display: "block", overflowWrap: "anywhere" },
  ".help p": { margin: "4px 0" },
});

// What is said of a function: how it is called, what it gives, and an example.
export function helpOf(entry: FunctionEntry): HTMLElement {
  return make(
    "div",
    { class: "help" },
    make("code", {}, entry.signature),
    make("p", {}, `${entry.summary}.`),
    make("code", {}, `${entry.example} = ${entry.result}`),
  );
}

export class Editor {
  private readonly view: EditorView;
  private readonly known: Map<string, FunctionEntry>;
  private readonly extensions: Extension;
  private readonly states = new WeakMap<object, EditorState>();
  private owner: object | undefined;

  constructor(host: HTMLElement, functions: FunctionEntry[], changed: (text: string) => void, run: () => void) {
    this.known = new Map(functions.map((entry) => [entry.name, entry]));
    const root = host.attachShadow({ mode: "open" });
    const options: Completion[] = functions.map((entry) => ({
      label: entry.name,
      detail: ` ${entry.section}`,
      type: "function",
      info: () => helpOf(entry),
      apply: (view, completion, from, to) => {
        // The bracket that closes is there already where one opens.
        const called = view.state.sliceDoc(to, to + 1) === "(";
        const insert = called ? entry.name : `${entry.name}()`;
        const anchor = from + entry.name.length + 1;
        view.dispatch({ changes: { from, to, insert }, selection: { anchor }, annotations: pickedCompletion.of(completion) });
      },
    }));
    const complete = (context: CompletionContext): CompletionResult | null => {
      const word = context.matchBefore(/[A-Za-z][A-Za-z0-9_]*/);
      if (!word || (word.from === word.to && !context.explicit)) return null;
      const names = new Set([...context.state.doc.toString().matchAll(/(?:^|[;\n])\s*([A-Za-z]\w*)\s*=/g)].map((m) => m[1] ?? ""));
      const own: Completion[] = [...names].map((label) => ({ label, type: "variable", detail: " a name of this program" }));
      return { from: word.from, options: [...own, ...options], validFor: /^\w*$/ };
    };
    const help = hoverTooltip((view, at) => {
      const line = view.state.doc.lineAt(at);
      for (const match of line.text.matchAll(/[A-Za-z][A-Za-z0-9_]*/g)) {
        const from = line.from + match.index;
        const entry = this.known.get(match[0]);
        if (entry && from <= at && at <= from + match[0].length) {
          return { pos: from, end: from + match[0].length, above: true, create: () => ({ dom: helpOf(entry) }) };
        }
      }
      return null;
    });
    this.extensions = [
      lineNumbers(),
      history(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      autocompletion({ override: [complete], icons: false, activateOnTypingDelay: 60 }),
      language(this.known),
      syntaxHighlighting(COLOURS),
      LOOK,
      help,
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": "Program", spellcheck: "false", autocapitalize: "off" }),
      keymap.of([
        { key: "Ctrl-Enter", run: () => (run(), true) },
        ...closeBracketsKeymap,
        ...completionKeymap,
        ...defaultKeymap,
        ...historyKeymap,
      ]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) changed(this.text());
      }),
    ];
    this.view = new EditorView({ root, parent: root, state: EditorState.create({ extensions: this.extensions }) });
  }

  text(): string {
    return this.view.state.doc.toString();
  }

  // Shows another program, without telling that it changed. Each owner has a history of its own.
  set(owner: object, text: string): void {
    if (this.owner) this.states.set(this.owner, this.view.state);
    this.owner = owner;
    const known = this.states.get(owner);
    const state = known?.doc.toString() === text ? known : EditorState.create({ doc: text, extensions: this.extensions });
    this.view.setState(state);
  }

  focus(): void {
    this.view.focus();
  }

  // Underlines what is wrong with the program; nothing takes the lines away.
  underline(source: string, problem: Problem | undefined): void {
    if (source !== this.text()) return;
    const found: Diagnostic[] = [];
    if (problem?.start !== undefined && problem.end !== undefined) {
      const units = unitsOf(source);
      const end = this.view.state.doc.length;
      const place = (start: number, stop: number) => {
        const from = Math.min(units(start), Math.max(end - 1, 0));
        return { from, to: Math.min(Math.max(units(stop), from + 1), end) };
      };
      const message = problem.help ? `${problem.message}\nhelp: ${problem.help}` : problem.message;
      found.push({ ...place(problem.start, problem.end), severity: "error", message });
      for (const label of problem.labels ?? []) {
        if (label.start === problem.start && label.end === problem.end) continue;
        found.push({ ...place(label.start, label.end), severity: "info", message: label.text });
      }
    }
    this.view.dispatch(setDiagnostics(this.view.state, found));
  }
}
