// What is the same as what is pointed at, in the picture and in the table: the same element by its
// offset, the same thread and value, the same lanes of a bank.

import type { Row } from "./panes";
import type { Meaning } from "./picture";
import type { ProgramTab } from "./state";

// Whether indices are pairs of a thread and a value.
export function pairs(open: ProgramTab): boolean {
  return open.view.kind === "thread-value" || (open.view.tile ?? "") !== "";
}

// Which rows of the table are the same; `threads` is how many there are, where indices are pairs.
export function sameRow(meaning: Meaning, called: string, group: number, threads: number | undefined): (row: Row) => boolean {
  return (row) => {
    if (meaning.thread !== undefined) {
      return threads !== undefined && row[0] % threads === meaning.thread && Math.floor(row[0] / threads) === meaning.value;
    }
    if (meaning.bank !== undefined) return row[3] === meaning.bank;
    // The inputs of an operation have coordinates of their own: their elements meet by offsets.
    if (meaning.coordinate !== undefined && called === "") return row[1] === meaning.coordinate;
    if (called === "composition" && group === 1) return false;
    return meaning.offset !== undefined && row[2] === meaning.offset;
  };
}

// Which cells of the picture are the same as the one of this group and place in it.
export function sameCell(
  meaning: Meaning,
  called: string,
  group: number,
  ordinal: number,
): (other: Meaning, itsGroup: number, itsOrdinal: number) => boolean {
  return (other, itsGroup, itsOrdinal) => {
    if (meaning.thread !== undefined) return other.thread === meaning.thread && (itsGroup !== group || other.value === meaning.value);
    if (meaning.bank !== undefined) {
      const lanes = meaning.lanes === undefined || other.lanes === undefined || itsOrdinal === ordinal || other.lanes.some((lane) => meaning.lanes?.includes(lane));
      return other.bank === meaning.bank && lanes;
    }
    if (called === "composition") {
      // B gives indices of A; the composite has at c what A has there.
      if (group === 1) return itsGroup !== 0 && itsOrdinal === ordinal;
      if (itsGroup === 1) return group === 2 && itsOrdinal === ordinal;
    }
    if (called === "" && meaning.coordinate !== undefined && other.coordinate !== undefined) return other.coordinate === meaning.coordinate;
    return meaning.offset !== undefined && other.offset === meaning.offset;
  };
}
