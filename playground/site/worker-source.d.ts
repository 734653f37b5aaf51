// What the build puts in: the worker's text, and of each picture of the book its page, what it
// shows and the fragment of its link.
declare const WORKER: string;
declare const BOOK: readonly (readonly [page: string, shows: string, fragment: string])[];
