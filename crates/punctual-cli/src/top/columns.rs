//! The columns of tasks: a row of one of these tables for each.

use punctual_core::metrics::{Figure, Term};

use self::Source::{Level, Number, Partition, Rate, Time};
use self::Statistic::{Last, Max, P50, P999};
use super::figures::Row;

/// A column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) head: &'static str,
    /// Order in which the live view drops columns that do not fit: the highest first.
    rank: u8,
    source: Source,
}

#[derive(Debug, Clone, Copy)]
enum Source {
    Partition,
    Level,
    /// Jobs per second.
    Rate,
    Number(Figure),
    Time(Term, Statistic),
}

#[derive(Debug, Clone, Copy)]
enum Statistic {
    Last,
    P50,
    P999,
    Max,
}

/// The value of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    Text(&'a str),
    Count(u64),
    /// A count that should be zero.
    Fault(u64),
    Nanos(u64),
    /// Not measured.
    Unknown,
}

/// Columns of the live view, after the task.
pub(super) const COLUMNS: [Column; 15] = [
    Column::new("LVL", 6, Level),
    Column::new("JOBS/S", 5, Rate),
    Column::new("J max", 2, Time(Term::Jitter, Max)),
    Column::new("R p50", 4, Time(Term::Response, P50)),
    Column::new("p99.9", 7, Time(Term::Response, P999)),
    Column::new("R max", 0, Time(Term::Response, Max)),
    Column::new("C max", 3, Time(Term::Execution, Max)),
    Column::new("MISS", 1, Number(Figure::Misses)),
    Column::new("OVERR", 8, Number(Figure::Overruns)),
    Column::new("JOBS", 9, Number(Figure::Jobs)),
    Column::new("J p99.9", 10, Time(Term::Jitter, P999)),
    Column::new("R last", 11, Time(Term::Response, Last)),
    Column::new("C p50", 12, Time(Term::Execution, P50)),
    Column::new("C p99.9", 13, Time(Term::Execution, P999)),
    Column::new("PARTITION", 14, Partition),
];

/// Returns which columns of these widths fit, with a space before each: as many of the most
/// important ones as there is room for.
pub(super) fn fitting(widths: [usize; COLUMNS.len()], mut room: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..COLUMNS.len()).collect();
    order.sort_by_key(|&at| COLUMNS[at].rank);
    let fits = |&at: &usize| {
        let left = room.checked_sub(widths[at] + 1);
        room = left.unwrap_or(0);
        left.is_some()
    };
    let mut shown: Vec<usize> = order.into_iter().take_while(fits).collect();
    shown.sort_unstable();
    shown
}

/// Returns the columns of the printed table after the task, each with the header of its group.
pub(super) fn printed(several_partitions: bool) -> Vec<(&'static str, Column)> {
    let column = |head, source| ("", Column::new(head, 0, source));
    let mut columns = Vec::new();
    if several_partitions {
        columns.push(column("partition", Partition));
    }
    columns.extend([column("level", Level), column("jobs", Number(Figure::Jobs)), column("jobs/s", Rate)]);
    for term in Term::ALL {
        let times = [("last", Last), ("p50", P50), ("p99.9", P999), ("max", Max)];
        let group = term.row().letter;
        columns.extend(times.map(|(head, statistic)| (group, Column::new(head, 0, Time(term, statistic)))));
    }
    columns.extend([column("misses", Number(Figure::Misses)), column("overruns", Number(Figure::Overruns))]);
    columns
}

impl Column {
    const fn new(head: &'static str, rank: u8, source: Source) -> Self {
        Self { head, rank, source }
    }

    /// Returns whether it has words rather than numbers.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.source, Partition)
    }

    /// Returns its value for a task.
    pub(super) fn value<'a>(&self, row: &'a Row) -> Value<'a> {
        let is_known = match self.source {
            Partition | Level => true,
            Rate => row.measured,
            Number(figure) => row.measured || !figure.row().of_jobs,
            Time(..) => row.has_times(),
        };
        if !is_known {
            return Value::Unknown;
        }
        match self.source {
            Partition => Value::Text(&row.partition),
            Level => Value::Count(row.level),
            Rate => row.rate.map_or(Value::Unknown, |rate| Value::Count(rate.round() as u64)),
            Number(figure) if figure.row().is_fault => Value::Fault(row.number(figure)),
            Number(figure) if figure.row().maximum_of.is_some() => Value::Nanos(row.number(figure)),
            Number(figure) => Value::Count(row.number(figure)),
            Time(term, statistic) => {
                let stat = row.term(term);
                Value::Nanos(match statistic {
                    Last => stat.last,
                    P50 => stat.p50,
                    P999 => stat.p999,
                    Max => stat.max,
                })
            }
        }
    }
}
