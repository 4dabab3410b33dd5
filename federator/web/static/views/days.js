// The numbers behind the charts of the overview: the tables of each source by day, and the crawls that did not read everything.
import {dates, tablesByDay} from "../charts.js";
import {make} from "../dom.js";
import {count, day, state} from "../format.js";
import {table} from "../parts.js";

/* What a source had at the end of a day, and what went wrong on it. */
const cell = (tables, crawled) => make("span", {}, crawled?.failed ? [state("failed", {text: `${count(crawled.failed)} failed`}), " "] : null, crawled?.partial ? [state("partial", {text: `${count(crawled.partial)} partial`}), " "] : null,
  tables === null ? "–" : count(tables));

/**
 * A row for each of 30 days, the newest first, with a column for each source.
 * @param {Map<string, any[]>} series days by source
 */
export function daysTable(series) {
  const sources = [...series].map(([name, days]) => ({name, tables: tablesByDay(days), crawled: new Map(days.map(each => [each.date, each]))}));
  const rows = dates().map((date, at) => [day(date), ...sources.map(({tables, crawled}) => cell(tables[at], crawled.get(date)))]);
  return table([["Day (UTC)", "nw"], ...sources.map(({name}) => [name, "n"])], rows.reverse(), "Tables by day");
}
