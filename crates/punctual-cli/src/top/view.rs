//! Layout of the live view.

use punctual_core::metrics::Figure;
use punctual_report::format::{NONE, format_count, format_nanos};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row as Line_, Sparkline, Table, TableState, Wrap};

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

/// Width from which on there is room for more columns.
const WIDE: u16 = 120;

pub(super) fn draw(screen: &Screen, frame: &mut Frame<'_>) {
    let (rows, picked) = screen.rows();
    let footing = footing(screen);
    // The reason for missing figures may be a long sentence; of keys the last ones may be missing.
    let is_sentence = !screen.is_typing && (screen.message.is_some() || screen.notice.is_some());
    let lines = if is_sentence { footing.width() as u16 / frame.area().width.max(1) + 1 } else { 1 };
    let [head, table, panel, foot] = Layout::vertical([
        Constraint::Length(1),
        // At least the header and three tasks; the histogram needs six lines.
        Constraint::Length((rows.len() as u16).saturating_add(1).clamp(4, (frame.area().height / 2).max(4))),
        Constraint::Fill(1),
        Constraint::Length(lines.min(4)),
    ])
    .areas(frame.area());
    frame.render_widget(heading(screen), head);
    tasks(screen, &rows, picked, frame, table);
    match screen.panel {
        Panel::Histogram => histogram(screen, rows.get(picked), frame, panel),
        Panel::Levels => levels::draw(&screen.levels, frame, panel),
        Panel::Traffic => words(traffic(screen), " messages carried in and out ", screen, frame, panel),
        Panel::Settings => words(settings(screen), " partitions, threads, settings ", screen, frame, panel),
        Panel::Help => words(Text::raw(HELP), " keys ", screen, frame, panel),
    }
    frame.render_widget(Paragraph::new(footing).wrap(Wrap { trim: true }), foot);
}

fn heading(screen: &Screen) -> Line<'static> {
    let mut line = Line::default();
    if let (Some(memory), Some(look)) = (screen.chosen.memory(), &screen.look) {
        line.push_span(text::head(memory, look).bold());
        if let Some(wrong) = text::wrong(memory) {
            line.push_span(format!("  {wrong} (w)").red());
        }
        if let Some(losses) = text::losses(look) {
            line.push_span(format!("  {losses} (m)").red());
        }
    }
    line
}

fn footing(screen: &Screen) -> Line<'static> {
    if screen.is_typing {
        return Line::from(vec![Span::raw(format!("filter: {}", screen.filter)), "▏".bold()]);
    }
    if let Some(message) = &screen.message {
        return message.clone().red().into();
    }
    if let Some(notice) = &screen.notice {
        return notice.clone().bold().into();
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
        line.push_span(format!("{state} {} (t ends)  ", recording.file().display()).bold());
    }
    line.push_span(keys.dim());
    line
}

fn tasks(screen: &Screen, rows: &[Row], picked: usize, frame: &mut Frame<'_>, area: Rect) {
    let more: &[Column] = if area.width >= WIDE { &columns::WIDE } else { &[] };
    let columns: Vec<&Column> = columns::NARROW.iter().chain(more).collect();
    let widths = columns.iter().map(|column| Constraint::Length(column.width));
    let widths = std::iter::once(Constraint::Fill(1)).chain(widths);
    let right = |text: String| Cell::new(Line::from(text).alignment(Alignment::Right));
    let heads = columns.iter().map(|column| right(column.head.to_owned()));
    let order = format!("TASK by {}", format!("{:?}", screen.order).to_lowercase());
    let header = Line_::new(std::iter::once(Cell::new(order)).chain(heads)).style(Style::new().reversed());
    let lines = rows.iter().map(|row| {
        let cells = columns.iter().map(|column| match column.value(row) {
            Value::Text(text) => right(text.to_owned()),
            Value::Count(count) => right(format_count(count)),
            Value::Fault(0) => right("0".to_owned()),
            Value::Fault(count) => right(count.to_string()).style(Style::new().red().bold()),
            Value::Nanos(ns) => right(time(ns)),
            Value::Unknown => right(NONE.to_owned()),
        });
        Line_::new(std::iter::once(Cell::new(row.name.clone())).chain(cells))
    });
    let chosen = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
    let table = Table::new(lines, widths).header(header).row_highlight_style(chosen);
    let mut state = TableState::new().with_selected(picked);
    frame.render_stateful_widget(table, area, &mut state);
}

fn histogram(screen: &Screen, row: Option<&Row>, frame: &mut Frame<'_>, area: Rect) {
    let Some(row) = row else { return };
    let term = screen.shown.term();
    let (name, stat) = (format!("{} {}", term.row().name, term.row().letter), row.term(term));
    let limits = [("period", row.period), ("deadline", row.deadline)];
    let limits = limits.map(|(name, ns)| ns.map_or(String::new(), |ns| format!(", {name} {}", time(ns))));
    let block =
        Block::new().borders(Borders::TOP).title(format!(" {}: {name}{} ", row.name, limits.concat()));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [figures, bars, axis] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)]).areas(inner);
    let Stat { last, max, p50, p999, mean, .. } = stat;
    let suspended = match row.number(Figure::Suspended) {
        0 => String::new(),
        count => {
            let max = time(row.number(Figure::SuspensionMax));
            format!("  suspended {}, max {max}", format_count(count))
        }
    };
    frame.render_widget(
        Line::raw(format!(
            "last {}  p50 {}  mean {}  p99.9 {}  max {}{suspended}",
            time(*last),
            time(*p50),
            format_nanos(*mean),
            time(*p999),
            time(*max),
        )),
        figures,
    );
    let Some((counts, from, to)) = bars_of(&stat.buckets, usize::from(bars.width)) else {
        return frame.render_widget(Line::raw("no job has ended").dim(), bars);
    };
    // Logarithmic: a single late job among millions matters, and gets a visible bar.
    let heights =
        counts.iter().map(|&count| if count == 0 { 0 } else { 4 + (count as f64).log2() as u64 * 4 });
    frame.render_widget(Sparkline::default().data(heights.collect::<Vec<_>>()), bars);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(axis);
    frame.render_widget(Line::raw(format!("{}, both ways logarithmic", time(from))).dim(), left);
    frame.render_widget(Line::raw(time(to)).dim().alignment(Alignment::Right), right);
}

/// Returns the counts of `width` bars of equal relative width, and the times at both ends; `None`
/// if there is nothing to draw.
fn bars_of(buckets: &[(u64, u64)], width: usize) -> Option<(Vec<u64>, u64, u64)> {
    let (from, to) = (buckets.first()?.0.max(1), buckets.last()?.0.max(1));
    if width == 0 {
        return None;
    }
    let mut counts = vec![0_u64; width];
    let range = (to as f64 / from as f64).ln();
    for &(end, count) in buckets {
        let place = (end.max(1) as f64 / from as f64).ln() / range;
        // NaN if all are in one bucket.
        let bar = if place.is_finite() { (place * (width - 1) as f64).round() as usize } else { 0 };
        let bar = &mut counts[bar.min(width - 1)];
        *bar = bar.saturating_add(count);
    }
    Some((counts, from, to))
}

fn settings(screen: &Screen) -> Text<'static> {
    let Some(memory) = screen.chosen.memory() else { return Text::default() };
    let about = &memory.about;
    let mut lines: Vec<Line<'static>> = Vec::new();
    lines.extend(about.missing.iter().map(|missing| format!("missing: {missing}").red().into()));
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
    Text::from(lines)
}

fn traffic(screen: &Screen) -> Text<'static> {
    let all = screen.look.as_ref().map_or(&[][..], |look| &look.traffic);
    if all.is_empty() {
        return Text::raw("none: the app has no topics, recordings or other `punctual::background::Traffic`");
    }
    let width = all.iter().map(|traffic| traffic.name.chars().count()).max().unwrap_or(0);
    let line = |traffic: &super::memory::Traffic| {
        let line = format!("{:<width$}  {}", traffic.name, text::in_words(traffic));
        if traffic.lost > 0 || traffic.refused > 0 { Line::from(line).red() } else { line.into() }
    };
    all.iter().map(line).collect()
}

fn words(text: Text<'static>, title: &'static str, screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    // The last line stays visible.
    let last = (text.lines.len() as u16).saturating_sub(1);
    let paragraph = Paragraph::new(text).wrap(Wrap { trim: false }).scroll((screen.scroll.min(last), 0));
    frame.render_widget(paragraph.block(Block::new().borders(Borders::TOP).title(title)), area);
}

fn time(ns: u64) -> String {
    format_nanos(ns as f64)
}
