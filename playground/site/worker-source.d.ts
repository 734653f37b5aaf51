// The worker's text, which the build puts in.
declare const WORKER: string;
