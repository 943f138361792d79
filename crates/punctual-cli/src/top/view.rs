//! Layout of the live view.

use punctual_core::metrics::{Figure, Term};
use punctual_report::format::{NONE, format_count, format_nanos};

use super::canvas::{Area, Canvas, Line, Style};
use super::columns::{self, Column, Value};
use super::figures::{Row, Stat};
use super::levels;
use super::screen::{Panel, Screen};
use super::text;

/// It fits a terminal of 80 × 24 below five tasks.
const HELP: &str = "\
↑ ↓ PgUp PgDn  choose a task, scroll        h    histogram of R, J or C
s              sort by the next column      l    the CPU use of each level
/              filter by name, Esc ends it  m    messages of topics, in and out
r              maxima and counts from now   w    partitions, threads, settings
t              record the next miss         Tab  the next app
q              quit

J: release to start, R: release to end, C: start to end without preemption and
suspension. All times since the start of the app, or since r. Maxima are exact
except those since r, which are within 1 % like p50 and p99.9. A miss is a job
that ended after its deadline, an overrun a release that found the previous job
unfinished. The CPU use of a level is that of the jobs that ended since the
last update.";

/// Width of names of tasks that columns leave room for.
const NAME_WIDTH: usize = 14;

pub(super) fn draw(screen: &Screen, canvas: &mut Canvas) {
    let (rows, picked) = screen.rows();
    let mut rest = canvas.area();
    let height = rest.height;
    canvas.line(rest.split_top(1), &heading(screen));
    let footing = footing(screen, rest.width);
    // The reason for missing figures may be a long sentence.
    let is_sentence = !screen.is_typing && (screen.message.is_some() || screen.notice.is_some());
    let lines = if is_sentence { footing.width() / rest.width.max(1) + 1 } else { 1 };
    let foot = rest.split_bottom(lines.min(4));
    // At least the header and three tasks; the histogram needs six lines.
    let table = rest.split_top((rows.len() + 1).clamp(4, (height / 2).max(4)));
    tasks(screen, &rows, picked, canvas, table);
    match screen.panel {
        Panel::Histogram => histogram(screen, rows.get(picked), canvas, rest),
        Panel::Levels => levels::draw(&screen.levels, canvas, rest),
        Panel::Traffic => words(&traffic(screen), " messages carried in and out ", screen, canvas, rest),
        Panel::Settings => words(&settings(screen), " partitions, threads, settings ", screen, canvas, rest),
        Panel::Help => {
            let lines: Vec<Line> = HELP.lines().map(|line| line.to_owned().into()).collect();
            words(&lines, " keys ", screen, canvas, rest);
        }
    }
    canvas.wrapped(foot, &[footing], 0);
}

fn heading(screen: &Screen) -> Line {
    let mut line = Line::default();
    if let (Some(memory), Some(snapshot)) = (screen.chosen.memory(), &screen.snapshot) {
        line.push(text::head(memory, snapshot), Style::BOLD);
        if let Some(wrong) = text::wrong(memory) {
            line.push(format!("  {wrong} (w)"), Style::RED);
        }
        if let Some(losses) = text::losses(snapshot) {
            line.push(format!("  {losses} (m)"), Style::RED);
        }
    }
    line
}

fn footing(screen: &Screen, width: usize) -> Line {
    if screen.is_typing {
        let mut line = Line::from(format!("filter: {}", screen.filter));
        line.push("▏", Style::BOLD);
        return line;
    }
    if let Some(message) = &screen.message {
        return Line::new(message, Style::RED);
    }
    if let Some(notice) = &screen.notice {
        return Line::new(notice, Style::BOLD);
    }
    let mut keys =
        String::from("q quit  s sort  / filter  r reset  h J/R/C  l levels  m topics  t trace  ? help");
    if !screen.filter.is_empty() {
        keys = format!("filter {}  {keys}", screen.filter);
    }
    if screen.chosen.since().is_reset() {
        keys = format!("since r  {keys}");
    }
    let mut line = Line::default();
    if let Some(recording) = &screen.next_miss {
        let state = if recording.has_miss() { "writing" } else { "recording until the next miss:" };
        line.push(format!("{state} {} (t ends)  ", recording.file().display()), Style::BOLD);
    }
    let keys = keys.split("  ").map(str::to_owned);
    line.push(whole(keys, "  ", width.saturating_sub(line.width())), Style::DIM);
    line
}

fn tasks(screen: &Screen, rows: &[Row], picked: usize, canvas: &mut Canvas, mut area: Area) {
    let text = |row: &Row, column: &Column| match column.value(row) {
        Value::Text(text) => text.to_owned(),
        Value::Count(count) | Value::Fault(count) => format_count(count),
        Value::Nanos(ns) => time(ns),
        Value::Unknown => NONE.to_owned(),
    };
    let length = |text: &str| text.chars().count();
    let widths = columns::COLUMNS.map(|column| {
        let cells = rows.iter().map(|row| length(&text(row, &column)));
        cells.max().unwrap_or(0).max(length(column.head))
    });
    let longest = rows.iter().map(|row| length(&row.name)).max().unwrap_or(0);
    let order = format!("TASK by {}", format!("{:?}", screen.order).to_lowercase());
    let reserved = longest.max(order.len()).min(NAME_WIDTH);
    let shown = columns::fitting(widths, area.width.saturating_sub(reserved));
    let taken: usize = shown.iter().map(|&at| widths[at] + 1).sum();
    let name_width = area.width.saturating_sub(taken);
    let mut line = |area: Area, name: &str, cell: &dyn Fn(&Column) -> (String, Style)| {
        let mut rest = area;
        canvas.text(rest.split_left(name_width), &shortened(name, name_width), Style::PLAIN);
        for &at in &shown {
            let (text, style) = cell(&columns::COLUMNS[at]);
            canvas.text_right(rest.split_left(widths[at] + 1), &text, style);
        }
        area
    };
    let header = line(area.split_top(1), &order, &|column| (column.head.to_owned(), Style::PLAIN));
    // The selected task is visible.
    let skipped = (picked + 1).saturating_sub(area.height);
    let mut chosen = None;
    for (index, row) in rows.iter().enumerate().skip(skipped).take(area.height) {
        let drawn = line(area.split_top(1), &row.name, &|column| match column.value(row) {
            Value::Fault(1..) => (text(row, column), Style::RED.and(Style::BOLD)),
            _ => (text(row, column), Style::PLAIN),
        });
        if index == picked {
            chosen = Some(drawn);
        }
    }
    canvas.style(header, Style::REVERSED);
    if let Some(chosen) = chosen {
        canvas.style(chosen, Style::CHOSEN);
    }
}

/// Joins as many parts as fit into `width` as a whole.
fn whole(parts: impl Iterator<Item = String>, separator: &str, width: usize) -> String {
    let mut line = String::new();
    for part in parts {
        let part = if line.is_empty() { part } else { format!("{separator}{part}") };
        if line.chars().count() + part.chars().count() > width {
            break;
        }
        line += &part;
    }
    line
}

/// Returns a name in at most `width` characters, with an ellipsis if it is longer.
fn shortened(name: &str, width: usize) -> String {
    if name.chars().count() <= width {
        return name.to_owned();
    }
    let start: String = name.chars().take(width.saturating_sub(1)).collect();
    if width == 0 { start } else { start + "…" }
}

fn histogram(screen: &Screen, row: Option<&Row>, canvas: &mut Canvas, area: Area) {
    let Some(row) = row else { return };
    let term = screen.shown;
    let (name, stat) = (format!("{} {}", term.row().name, term.row().letter), row.term(term));
    let limits = [("period", row.period), ("deadline", row.deadline)];
    let limits = limits.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", time(ns?))));
    let title = std::iter::once(format!("{}: {name}", row.name)).chain(limits);
    let title = whole(title.chain(["logarithmic".to_owned()]), ", ", area.width.saturating_sub(2));
    let mut bars = canvas.titled(area, &format!(" {title} "));
    let (figures, foot) = (bars.split_top(1), bars.split_bottom(1));
    let Stat { last, max, p50, p999, mean, .. } = stat;
    let numbers = [("max", *max as f64), ("p99.9", *p999 as f64), ("mean", *mean)];
    let numbers = numbers.into_iter().chain([("p50", *p50 as f64), ("last", *last as f64)]);
    let numbers = numbers.map(|(name, ns)| format!("{name} {}", format_nanos(ns)));
    let suspended = Some(row.number(Figure::Suspended)).filter(|&count| count > 0).map(|count| {
        format!("suspended {}, max {}", format_count(count), time(row.number(Figure::SuspensionMax)))
    });
    let numbers = whole(numbers.chain(suspended), "  ", figures.width);
    canvas.text(figures, &numbers, Style::PLAIN);
    // A deadline is one of the response time.
    let deadline = row.deadline.filter(|_| term == Term::Response);
    let Some(axis) = Axis::new(&stat.buckets, deadline, bars.width) else {
        return canvas.text(bars, "no job has ended", Style::DIM);
    };
    // Logarithmic: a single late job among millions matters, and gets a visible bar.
    let counts = axis.counts(&stat.buckets).into_iter();
    let heights = counts.map(|count| if count == 0 { 0 } else { 4 + (count as f64).log2() as u64 * 4 });
    let heights: Vec<u64> = heights.collect();
    let highest = heights.iter().max().copied().unwrap_or(0);
    canvas.bars(bars, heights.into_iter(), highest);
    canvas.text(foot, &axis.labels(deadline), Style::DIM);
    if let Some(at) = deadline.map(|deadline| axis.column(deadline)) {
        for y in bars.y..foot.y + foot.height {
            if let Some(cell) = canvas.cell(bars.x + at, y) {
                *cell = (if cell.0 == ' ' { '┊' } else { cell.0 }, Style::RED);
            }
        }
    }
}

/// The logarithmic axis of times below the histogram.
struct Axis {
    from: u64,
    to: u64,
    width: usize,
}

impl Axis {
    /// Creates the axis of all buckets and the deadline; `None` if there is nothing to draw.
    fn new(buckets: &[(u64, u64)], deadline: Option<u64>, width: usize) -> Option<Self> {
        let ends = [buckets.first()?.0, buckets.last()?.0].into_iter().chain(deadline);
        let (from, to) = (ends.clone().min()?.max(1), ends.max()?.max(1));
        (width > 0).then_some(Self { from, to, width })
    }

    /// Returns the column of a time.
    fn column(&self, ns: u64) -> usize {
        let place = (ns.max(1) as f64 / self.from as f64).ln() / (self.to as f64 / self.from as f64).ln();
        // NaN if the axis has a single time.
        let column = if place.is_finite() { (place * (self.width - 1) as f64).round() as usize } else { 0 };
        column.min(self.width - 1)
    }

    /// Returns the counts of bars of equal relative width.
    fn counts(&self, buckets: &[(u64, u64)]) -> Vec<u64> {
        let mut counts = vec![0_u64; self.width];
        for &(end, count) in buckets {
            let bar = &mut counts[self.column(end)];
            *bar = bar.saturating_add(count);
        }
        counts
    }

    /// Returns the line below the bars: both ends, the deadline, and ticks where there is room.
    fn labels(&self, deadline: Option<u64>) -> String {
        let mut line = vec![' '; self.width];
        let mut put = |at: usize, text: &str| {
            let text: Vec<char> = text.chars().collect();
            let end = at + text.len();
            let around = at.saturating_sub(1)..(end + 1).min(self.width);
            if end <= self.width && line[around].iter().all(|&c| c == ' ') {
                line[at..end].copy_from_slice(&text);
            }
        };
        let (from, to) = (time(self.from), time(self.to));
        put(0, &from);
        if let Some(deadline) = deadline {
            let mark = format!("deadline {}", time(deadline));
            let at = self.column(deadline) + 1;
            put(
                if at + mark.chars().count() <= self.width {
                    at
                } else {
                    (at - 1).saturating_sub(mark.chars().count())
                },
                &mark,
            );
        }
        put(self.width.saturating_sub(to.chars().count()), &to);
        for (tick, label) in ticks(self.from, self.to) {
            put(self.column(tick), &format!("╵{label}"));
        }
        line.into_iter().collect()
    }
}

/// Returns round times between two others: decades, or if there are few, also their halves and
/// fifths.
fn ticks(from: u64, to: u64) -> Vec<(u64, String)> {
    let steps: &[u64] = if to / from.max(1) >= 100 { &[1] } else { &[1, 2, 5] };
    let decades = (0..18).map(|decade| 10_u64.pow(decade));
    let ticks = decades.flat_map(|decade| steps.iter().map(move |step| decade * step));
    let ticks = ticks.filter(|tick| (from..=to).contains(tick));
    let label = |tick: u64| match tick {
        0..1_000 => format!("{tick} ns"),
        1_000..1_000_000 => format!("{} µs", tick / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", tick / 1_000_000),
        _ => format!("{} s", tick / 1_000_000_000),
    };
    ticks.map(|tick| (tick, label(tick))).collect()
}

fn settings(screen: &Screen) -> Vec<Line> {
    let Some(memory) = screen.chosen.memory() else { return Vec::new() };
    let about = &memory.about;
    let mut lines: Vec<Line> = Vec::new();
    lines.extend(about.missing.iter().map(|missing| Line::new(format!("missing: {missing}"), Style::RED)));
    lines.extend(about.notes.iter().map(|note| format!("note: {note}").into()));
    lines.push(format!("{}; memory: {}; punctual {}", about.kernel, about.memory, about.punctual).into());
    lines.extend(about.partitions.iter().map(|partition| {
        let cpu = partition.cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
        format!("partition {}: {cpu}", partition.name).into()
    }));
    lines.extend(about.threads.iter().map(|thread| {
        let priority = if thread.priority > 0 { format!(" {}", thread.priority) } else { String::new() };
        format!("thread {}: {}{priority}, CPUs {}", thread.name, thread.policy, thread.cpus).into()
    }));
    lines
}

fn traffic(screen: &Screen) -> Vec<Line> {
    let all = screen.snapshot.as_ref().map_or(&[][..], |snapshot| &snapshot.traffic);
    let helpers = screen.snapshot.as_ref().and_then(text::helpers);
    if all.is_empty() && helpers.is_none() {
        let none = "none: the app has no topics, recordings or other `punctual::background::Traffic`";
        return vec![none.to_owned().into()];
    }
    let width = all.iter().map(|traffic| traffic.name.chars().count()).max().unwrap_or(0);
    let line = |traffic: &super::memory::Traffic| {
        let line = format!("{:<width$}  {}", traffic.name, text::in_words(traffic));
        let is_fault = traffic.lost > 0 || traffic.refused > 0;
        Line::new(line, if is_fault { Style::RED } else { Style::PLAIN })
    };
    all.iter().map(line).chain(helpers.map(Line::from)).collect()
}

fn words(lines: &[Line], title: &str, screen: &Screen, canvas: &mut Canvas, area: Area) {
    let area = canvas.titled(area, title);
    // The last line stays visible.
    let skipped = usize::from(screen.scroll).min(lines.len().saturating_sub(1));
    canvas.wrapped(area, lines, skipped);
}

fn time(ns: u64) -> String {
    format_nanos(ns as f64)
}
